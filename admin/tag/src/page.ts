// What all spots of a page share.
import type {PageSpot} from './spot.js';

/** One ad as `ads_serve` answers it. */
export interface Ad {
  placement: string;
  campaign: number;
  ad_group: number;
  creative: number;
  type: 'image' | 'html' | 'native' | 'tag';
  width: number;
  height: number;
  content: Record<string, string>;
  impression_url: string;
  viewable_url: string;
  click_url: string;
  frame_url?: string;
  viewable?: Viewable;
}

/** Which share of an ad must be in view for how long. */
export interface Viewable {
  share: number;
  seconds: number;
}

export interface Options {
  /** The folder of `serve`, with a slash at its end; `/spot/` by default. */
  base?: string;
  /** The name of the element; `page-spot` by default. */
  element?: string;
  /** What a spot with an ad is called; `Advertisement` by default. */
  label?: string;
  /** `wait`: no request before the consent manager has an answer, or 3 seconds; `wait 5`: 5 seconds. */
  consent?: string;
  /** How near to the view a spot asks for an ad; `300px` by default. */
  margin?: string;
  /** Key-values of every request. */
  keys?: Record<string, string>;
}

/** One request and its answer, for the debug panel. */
export interface Asked {
  url: string;
  answer: any;
}

interface Modules {
  consent(): Promise<typeof import('./tag-consent.js')>;
  debug(): Promise<typeof import('./tag-debug.js')>;
}

export const page = {
  base: '/spot/',
  element: 'page-spot',
  label: 'Advertisement',
  consent: '',
  margin: '300px',
  keys: {} as Record<string, string>,
  spots: new Set<PageSpot>(),
  asked: [] as Asked[],
  debugging: false,
  modules: undefined as unknown as Modules,
};

/** The key-values in the attributes of an element: `data-key-section="sports"`. */
export const keysOf = (element: Element): Record<string, string> => {
  const keys: Record<string, string> = {};
  for (const {name, value} of element.attributes) {
    if (name.startsWith('data-key-')) {
      keys[name.slice(9)] = value;
    }
  }
  return keys;
};

/** An address of the server's answer, which may be relative to the server. */
export const absolute = (url: string): string => new URL(url, new URL(page.base, location.href)).href;
