// The stream of ads_live: one for the page, while a view follows it.
import {Store} from './store.ts';

export const totals = ['requests', 'serves', 'impressions', 'viewables', 'clicks', 'conversions'] as const;
export type Total = (typeof totals)[number];

export interface LiveEvent {
  type: 'serve' | 'impression' | 'viewable' | 'click' | 'conversion';
  time: number;
  campaign: number;
  ad_group: number;
  creative: number;
  invalid?: string;
  cents?: number;
}

export interface Frame extends Record<Total, number> {
  time: number;
  generation: number;
  placements: number;
  spend_cents: number;
  unfilled: Record<string, number>;
  written: number;
  invalid: number;
  dropped: number;
  keeper_silent_ms: number;
  rates: Record<Total, number> | null;
  events: LiveEvent[];
}

export interface LiveCampaign {
  id: number;
  serves: number;
  impressions: number;
  viewables: number;
  clicks: number;
  conversions: number;
  spend_cents: number;
}

const mostCampaigns = 32;
const keptFrames = 300;
const keptEvents = 60;
const retryAfter = 5000;
const smoothed = 10;

class Live extends Store<Frame> {
  /** Frames of the last minutes, oldest first. */
  readonly frames: Frame[] = [];
  /** The newest first. */
  readonly events: LiveEvent[] = [];
  readonly campaigns = new Map<number, LiveCampaign>();
  connected = false;
  paused = false;
  private source: EventSource | undefined;
  private ids: number[] = [];
  private timer = 0;

  constructor() {
    super('ads_live');
  }

  /** Per second over the last ten: from one second to the next is mostly chance. */
  average(total: Total): number | null {
    const last = this.frames.at(-1);
    const first = this.frames.at(-1 - smoothed) ?? this.frames[0];
    return last && first && last !== first ? (last[total] - first[total]) / (last.time - first.time) * 1000 : null;
  }

  /** The campaigns whose figures are sent as well. */
  watch(ids: number[]): void {
    const wanted = [...new Set(ids)].slice(0, mostCampaigns).sort((a, b) => a - b);
    if (wanted.join() !== this.ids.join()) {
      this.ids = wanted;
      if (this.source) {
        this.open();
      }
    }
  }

  protected override begin(): void {
    document.addEventListener('visibilitychange', this.shown);
    this.open();
  }

  protected override end(): void {
    document.removeEventListener('visibilitychange', this.shown);
    this.close();
  }

  // A page that nobody sees needs no stream.
  private readonly shown = () => {
    if (document.visibilityState === 'visible') {
      this.open();
    } else {
      this.close();
    }
  };

  private close(): void {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = undefined;
    this.connected = false;
  }

  private open(): void {
    this.close();
    const source = this.source = new EventSource(this.ids.length ? `live?campaigns=${this.ids.join()}` : 'live');
    source.onopen = () => {
      this.connected = true;
      this.tell();
    };
    source.addEventListener('node', event => this.take(JSON.parse(event.data) as Frame));
    source.addEventListener('campaigns', event => {
      for (const campaign of (JSON.parse(event.data) as {campaigns: LiveCampaign[]}).campaigns) {
        this.campaigns.set(campaign.id, campaign);
      }
      this.tell();
    });
    // The browser connects again by itself, unless it was refused.
    source.onerror = () => {
      this.connected = false;
      this.fail(new Error(source.readyState === EventSource.CLOSED ? 'ads_live is not there' : 'the stream ended, connecting again'));
      if (source.readyState === EventSource.CLOSED && this.source === source) {
        this.timer = window.setTimeout(() => this.open(), retryAfter);
      }
    };
  }

  private take(frame: Frame): void {
    const last = this.frames.at(-1);
    if (last && frame.time <= last.time) {
      return;
    }
    this.connected = true;
    this.frames.push(frame);
    this.frames.splice(0, this.frames.length - keptFrames);
    if (!this.paused) {
      this.events.unshift(...frame.events.toReversed());
      this.events.splice(keptEvents);
    }
    this.set(frame);
  }
}

export const live = new Live();
