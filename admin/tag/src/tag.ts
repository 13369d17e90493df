// The script: <script async src="/spot/tag.js"></script>. Its attributes are the options.
import {keysOf, page} from './page.js';
import {debug, refresh, start} from './start.js';

declare global {
  interface Window {
    spots?: {keys?: Record<string, string>; refresh?: typeof refresh; debug?: typeof debug};
  }
}

const script = document.currentScript as HTMLScriptElement;
const load = (name: string): Promise<any> => import(script.src.replace(/(\.\w+)?(\?.*)?$/, `-${name}$1$2`));
page.modules = {consent: () => load('consent'), debug: () => load('debug')};
const spots = window.spots ??= {};
const keys = spots.keys = {...keysOf(script), ...spots.keys};
Object.assign(spots, {refresh, debug});
start({base: new URL('.', script.src).href, ...script.dataset, keys});
