// The element: a place on the page that asks for an ad when it is nearly in view.
import {ask} from './ask.js';
import {measure, track} from './measure.js';
import {absolute, page, type Ad, type Viewable} from './page.js';
import {render} from './render.js';

const usual: Viewable = {share: 0.5, seconds: 1};

const sheet = (rules: string): CSSStyleSheet => {
  const made = new CSSStyleSheet();
  made.replaceSync(rules);
  return made;
};
let style: CSSStyleSheet | undefined;
let gone: CSSStyleSheet | undefined;

// No observer is told anything while the page is hidden, and a page that is prerendered is: by the
// HTML standard ("update the rendering"), so nothing is asked for before somebody looks.
let near: IntersectionObserver | undefined;
const watch = (spot: PageSpot): void => {
  near ??= new IntersectionObserver(entries => {
    for (const {target, isIntersecting} of entries) {
      if (isIntersecting || target.getAttribute('loading') === 'eager') {
        near!.unobserve(target);
        void ask(target as PageSpot);
      }
    }
  }, {rootMargin: page.margin});
  near.unobserve(spot);
  near.observe(spot);
};

// The path of the page: another one is another page, also where no document is loaded.
let path = '';
const route = (): void => {
  if (path !== (path = location.pathname)) {
    for (const spot of page.spots) {
      spot.refresh();
    }
  }
};

/** Milliseconds that the focus may take to follow the Tab key. */
const tabLasts = 500;

/** Listens to what concerns all spots. */
export const listen = (): void => {
  path = location.pathname;
  addEventListener('popstate', route);
  (globalThis as {navigation?: EventTarget}).navigation?.addEventListener('currententrychange', route);
  // A click into a frame is seen only by the focus that it takes, as the Tab key does. That key may
  // be up again before the focus is there.
  let tabbed = -tabLasts;
  addEventListener('keydown', event => {
    if (event.key === 'Tab') {
      tabbed = event.timeStamp;
    }
  }, true);
  addEventListener('blur', event => {
    const clicked = event.timeStamp - tabbed >= tabLasts;
    setTimeout(() => {
      for (const spot of page.spots) {
        if (clicked && spot.shadowRoot!.activeElement?.localName === 'iframe') {
          spot.emit('click');
        }
      }
    });
  });
};

/** What events of a spot tell: which ad it is, and nothing of its content. */
export interface SpotDetail {
  placement: string;
  campaign?: number;
  ad_group?: number;
  creative?: number;
}

// On a server there are no elements, but modules are imported there all the same.
const Base = globalThis.HTMLElement ?? class {} as typeof HTMLElement;

export class PageSpot extends Base {
  static observedAttributes = ['placement'];

  /** The ad that is shown. */
  ad?: Ad;
  /** Which request is this spot's last; answers to others are not shown. */
  turn = 0;

  #root = this.attachShadow({mode: 'open'});
  #slot = document.createElement('slot');
  #native?: Element;
  #internals = this.attachInternals();
  #started = false;
  #stop?: () => void;
  #timer?: ReturnType<typeof setTimeout>;

  constructor() {
    super();
    style ??= sheet(':host{display:block}:host([hidden]){display:none!important}a,img,iframe{display:block;max-width:100%;border:0}');
    gone ??= sheet(':host{display:none!important}');
    this.#collapse(false);
    this.#root.append(this.#slot);
  }

  get placement(): string {
    return this.getAttribute('placement') ?? '';
  }

  /** Asks for another ad, at once or when the spot is nearly in view. */
  refresh(): void {
    this.turn++;
    if (this.isConnected && this.placement) {
      this.#started = true;
      this.#collapse(false);
      watch(this);
    }
  }

  connectedCallback(): void {
    page.spots.add(this);
    route();
    if (!this.#started) {
      this.#adopt() || this.refresh();
    }
  }

  // A node that is moved is disconnected and connected again in one turn.
  disconnectedCallback(): void {
    queueMicrotask(() => {
      if (!this.isConnected) {
        near?.unobserve(this);
        page.spots.delete(this);
        this.#clear();
        this.#started = false;
        this.turn++;
      }
    });
  }

  connectedMoveCallback(): void {}

  attributeChangedCallback(_: string, old: string | null, now: string | null): void {
    if (old !== now && page.spots.has(this)) {
      this.refresh();
    }
  }

  /** Shows the ad, or that there is none. */
  show(ad?: Ad): void {
    this.#clear();
    delete this.dataset.inserted;
    this.ad = ad;
    const id = this.getAttribute('template');
    const rendered = ad && render(ad, id ? document.getElementById(id) as HTMLTemplateElement : this.querySelector<HTMLTemplateElement>(':scope>template'));
    if (!rendered) {
      this.#empty();
      return;
    }
    const {node, loads} = rendered;
    this.#collapse(false);
    if (ad!.type === 'native') {
      // In the page's own tree, where the page's own styles are.
      node.slot = this.#slot.name = 'ad';
      this.#native = node;
      this.append(node);
    } else {
      this.#root.replaceChildren(node);
    }
    const begin = (): void => {
      this.#label(page.label);
      this.emit('fill');
      this.#measure(loads ?? node, ad!);
    };
    if (loads) {
      loads.onload = () => {
        loads.onload = null;
        begin();
      };
      loads.onerror = () => {
        this.#clear();
        this.#empty();
      };
    } else {
      begin();
    }
  }

  emit(name: 'fill' | 'empty' | 'view' | 'click'): void {
    const {campaign, ad_group, creative} = this.ad ?? {};
    const detail: SpotDetail = {placement: this.placement, campaign, ad_group, creative};
    this.dispatchEvent(new CustomEvent(name, {bubbles: true, composed: true, detail}));
  }

  #measure(node: Element, ad: Ad, counted = false): void {
    const seconds = Number(this.getAttribute('refresh'));
    // What changes by itself moves.
    const due = seconds && !matchMedia('(prefers-reduced-motion:reduce)').matches
      ? Date.now() + Math.max(seconds, 30) * 1000 : Infinity;
    this.#stop = measure(node, ad.viewable ?? usual,
      () => counted || track(absolute(ad.impression_url)),
      () => {
        track(absolute(ad.viewable_url));
        this.emit('view');
      },
      inView => {
        clearTimeout(this.#timer);
        if (inView && due < Infinity) {
          this.#timer = setTimeout(() => this.refresh(), Math.max(0, due - Date.now()));
        }
      });
  }

  // An ad that nginx has inserted is measured; no request is made for it.
  #adopt(): boolean {
    const {inserted, type, impression, viewable, viewableShare, viewableSeconds, creative} = this.dataset;
    if (inserted === undefined) {
      return false;
    }
    this.#started = true;
    if (inserted) {
      this.ad = {
        placement: this.placement, creative: Number(creative), impression_url: impression, viewable_url: viewable,
        viewable: {share: Number(viewableShare), seconds: Number(viewableSeconds)},
      } as Ad;
      this.#label(page.label);
      // The children may be still to come.
      const find = (): void => {
        const node = this.querySelector<HTMLElement>(':scope>:not([hidden])');
        if (node && !this.#stop) {
          const picture = node.querySelector('img');
          // The box of a link is that of a line of text, whatever picture is in it.
          const whole = type === 'native' ? this : type === 'image' && picture || node;
          const begin = (): void => this.#measure(whole, this.ad!, !!this.querySelector(':scope>img[hidden]'));
          picture && !picture.complete ? picture.onload = begin : begin();
        }
      };
      this.#slot.onslotchange = find;
      find();
    }
    return true;
  }

  #collapse(now: boolean): void {
    this.#root.adoptedStyleSheets = now ? [style!, gone!] : [style!];
  }

  #label(text: string | null): void {
    this.#internals.role = text && 'group';
    this.#internals.ariaLabel = text;
  }

  // Below the view nothing moves that a reader sees; anywhere else the space is kept.
  #empty(): void {
    const fallback = this.querySelector(':scope>:not(template)') || this.textContent!.trim();
    this.#collapse(!fallback && this.getBoundingClientRect().top >= innerHeight);
    this.emit('empty');
  }

  #clear(): void {
    this.#stop?.();
    this.#stop = undefined;
    clearTimeout(this.#timer);
    this.#slot.onslotchange = null;
    this.#native?.remove();
    this.#native = undefined;
    this.#slot.name = '';
    this.#root.replaceChildren(this.#slot);
    this.ad = undefined;
    this.#label(null);
  }
}
