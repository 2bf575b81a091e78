"""The Studio: the web page of a server. The sources are in `studio/`; the files here were built from them."""
