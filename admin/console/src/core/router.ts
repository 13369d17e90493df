// The page of the address: #/NAME/ID?QUERY. The fragment, so that all addresses are below one location.
import {Store} from './store.ts';

export interface Route {
  name: string;
  id: string;
  query: URLSearchParams;
}

export const address = (name: string, id: string | number = '', query: Record<string, string> = {}): string => {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  return `#/${name}${id === '' ? '' : `/${encodeURIComponent(id)}`}${text && `?${text}`}`;
};

const parse = (hash: string): Route => {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const [name = '', id = ''] = path.split('/');
  let decoded = '';
  try {
    decoded = decodeURIComponent(id);
  } catch {
    // An address that was cut: as if nothing was named.
  }
  return {name: name || 'today', id: decoded, query: new URLSearchParams(query)};
};

class Router extends Store<Route> {
  constructor() {
    super('address');
    this.value = parse(location.hash);
    addEventListener('hashchange', () => this.set(parse(location.hash)));
  }

  get route(): Route {
    return this.value!;
  }

  go(to: string): void {
    location.hash = to;
  }

  /** Changes the address of what is shown, without a step in the history. */
  replace(query: Record<string, string>): void {
    const {name, id} = this.route;
    history.replaceState(null, '', address(name, id, query));
    this.set(parse(location.hash));
  }
}

export const router = new Router();
