// How much of an ad is in view, by the definition of the Media Rating Council.
import type {Viewable} from './page.js';

const least = 1e-6;  // a share that stands for one pixel

/**
 * Calls `seen` once, when a pixel of the node is in view, `viewed` once, when the share was in view
 * for the time without a break, and `watched` whenever that share comes into view or leaves it.
 * What it returns ends it.
 */
export const measure = (node: Element, {share, seconds}: Viewable, seen: () => void, viewed: () => void,
                        watched: (inView: boolean) => void): (() => void) => {
  let ratio = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let first = true;
  let done = false;
  let inView = false;
  const look = (): void => {
    const visible = document.visibilityState === 'visible' && ratio >= least;
    if (visible && first) {
      first = false;
      seen();
    }
    if (inView !== (inView = visible && ratio >= share)) {
      clearTimeout(timer);
      if (inView && !done) {
        timer = setTimeout(() => {
          done = true;
          viewed();
        }, seconds * 1000);
      }
      watched(inView);
    }
  };
  const observer = new IntersectionObserver(entries => {
    ratio = entries.at(-1)!.intersectionRatio;
    look();
  }, {threshold: [least, share]});
  observer.observe(node);
  document.addEventListener('visibilitychange', look);
  return () => {
    clearTimeout(timer);
    observer.disconnect();
    document.removeEventListener('visibilitychange', look);
  };
};

/** Counts an event: the request outlives the page, and its answer is of no interest. */
export const track = (url: string): void => {
  fetch(url, {method: 'POST', keepalive: true, mode: 'no-cors', credentials: 'include'})
    .catch(() => { new Image().src = url; });
};
