// What is fetched again and again while a view follows it and the page is visible.
import {request} from './http.ts';
import {Store} from './store.ts';

const slowest = 60_000;

export class Poll<T> extends Store<T> {
  version = '';
  private timer = 0;
  private failures = 0;
  private fetching: AbortController | undefined;

  /** `name` tells people where the figures are from; `every` is in ms. */
  constructor(name: string, private readonly path: string, private readonly every: number) {
    super(name);
  }

  async refresh(): Promise<void> {
    if (this.followed) {
      await this.fetch();
    }
  }

  protected override begin(): void {
    document.addEventListener('visibilitychange', this.shown);
    void this.fetch();
  }

  protected override end(): void {
    document.removeEventListener('visibilitychange', this.shown);
    clearTimeout(this.timer);
    this.fetching?.abort();
  }

  private readonly shown = () => {
    if (document.visibilityState === 'visible') {
      void this.fetch();
    }
  };

  private async fetch(): Promise<void> {
    clearTimeout(this.timer);
    this.fetching?.abort();
    const fetching = this.fetching = new AbortController();
    try {
      const {value, version} = await request<T>('GET', this.path, {signal: fetching.signal});
      if (fetching.signal.aborted) {
        return;
      }
      this.failures = 0;
      this.version = version;
      this.set(value);
    } catch (error) {
      if (fetching.signal.aborted) {
        return;
      }
      this.failures++;
      this.fail(error);
    }
    if (this.followed && document.visibilityState === 'visible') {
      this.timer = window.setTimeout(() => void this.fetch(), Math.min(slowest, this.every * 2 ** Math.min(this.failures, 4)));
    }
  }
}

const polls = new Map<string, Poll<unknown>>();

/** The one poll of an address. */
export const poll = <T>(name: string, path: string, every: number): Poll<T> => {
  const found = polls.get(path) ?? new Poll<unknown>(name, path, every);
  polls.set(path, found);
  return found as Poll<T>;
};

/** After an edit: what is shown is fetched again. Resolves when the edited object, of this address, is there: the next edit of it goes on from that version. */
export const refreshAll = async (edited: string): Promise<void> => {
  const refreshed = [...polls].map(([path, one]) => [path, one.refresh()] as const);
  await refreshed.find(([path]) => path === edited)?.[1];
};
