"""The Studio: the web page of a server. Its sources are in `studio/`; what is served here was built from them."""
