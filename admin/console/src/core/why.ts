// Diagnoses: why ad groups are not served.
import {poll, type Poll} from './poll.ts';

export interface Cause {
  reason: string;
  extent: 'all' | 'some' | 'maybe';
  object: {kind: string; id: string | number; name: string};
  what: string;
  remedy: string;
  placements: string[];
}

export interface Diagnosis {
  ad_group: number;
  name: string;
  campaign: number;
  campaign_name: string;
  verdict: 'blocked' | 'limited' | 'used_up' | 'off' | 'fine';
  causes: Cause[];
  delivery: number | null;
  flight_delivery: number | null;
  day: string | null;
  stopped: string | null;
  serves: number | null;
  impressions: number | null;
  viewables: number | null;
  clicks: number | null;
  conversions: number | null;
  spend_cents: number | null;
  refused: {reason: string; count: number; estimate: boolean; what: string; hint: string}[] | null;
}

export interface Diagnoses {
  ad_groups: Diagnosis[];
  warnings: string[];
}

const name = 'PostgreSQL and ads_status';

export const allWhy = (): Poll<Diagnoses> => poll<Diagnoses>(name, 'api/why', 30_000);
export const campaignWhy = (id: string | number): Poll<Diagnoses> => poll<Diagnoses>(name, `api/campaigns/${id}/why`, 15_000);
export const groupWhy = (id: string | number): Poll<Diagnoses> => poll<Diagnoses>(name, `api/ad-groups/${id}/why`, 15_000);
