/** Routes: the part of the address after `#`. The page needs no help of the server, and works below any prefix. */

/** Where the page stands: the first part names the page, the second what it shows. */
export interface Route {
  page: string;
  id: string;
  query: URLSearchParams;
}

function read(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [page = "", ...rest] = path.split("/");
  return { page: page || "now", id: decodeURIComponent(rest.join("/")), query: new URLSearchParams(query) };
}

class Router {
  route = $state.raw(read());

  constructor() {
    addEventListener("hashchange", () => {
      this.route = read();
      scrollTo(0, 0);
    });
  }

  go(href: string): void {
    location.hash = href;
  }
}

export const router = new Router();

/** The address of a page. */
export function href(page: string, id = ""): string {
  return id ? `#/${page}/${encodeURIComponent(id)}` : `#/${page}`;
}
