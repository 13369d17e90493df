import {page, type Options} from './page.js';
import {listen, PageSpot} from './spot.js';

/** Defines the element. Options that are not given have their defaults. */
export const start = (options: Options = {}): void => {
  for (const name in options) {
    const value = options[name as keyof Options];
    if (value !== undefined && name in page) {
      (page as Record<string, unknown>)[name] = value;
    }
  }
  if (!customElements.get(page.element)) {
    listen();
    customElements.define(page.element, PageSpot);
  }
};

/** Asks for other ads, in all spots. */
export const refresh = (): void => page.spots.forEach(spot => spot.refresh());

/** Shows what was asked, won and refused; requests from now on ask why. */
export const debug = async (): Promise<void> => {
  page.debugging = true;
  (await page.modules.debug()).open(page);
};
