// The module: import {start} from 'nginx-ads-tag'.
import {page} from './page.js';

export {PageSpot, type SpotDetail} from './spot.js';
export {debug, refresh, start} from './start.js';
export type {Ad, Options, Viewable} from './page.js';

page.modules = {consent: () => import('./tag-consent.js'), debug: () => import('./tag-debug.js')};
