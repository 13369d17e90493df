// What ads_status answers, as far as the page uses it.
import {poll, type Poll} from './poll.ts';

export interface Pace {
  strategy: string;
  status: 'under_pace' | 'on_pace' | 'over_pace' | null;
  utilization: number | null;
  probability: number;
  exhausted?: boolean;
}

export interface Amounts {
  amount: number;
  ideal: number;
  used: number;
  in_flight: number;
}

export interface GroupStatus {
  id: number;
  campaign: number;
  day: string;
  serves: number;
  anonymous: number;
  impressions: number;
  viewables: number;
  clicks: number;
  conversions: number;
  spend_cents: number;
  pace: Pace;
  limits: ({of: string} & Amounts)[];
  refused: Record<string, number>;
  sampled: string[];
  stopped: string | null;
}

export interface CampaignStatus {
  id: number;
  name: string;
  stopped: string | null;
  day: string;
  day_seconds: number;
  elapsed_seconds: number;
  budget: ({type: 'daily' | 'lifetime'; cents: number; whole_cents: number} & Amounts) | null;
  pace: Pace;
}

export interface Sign {
  value: number | null;
  status: 'unknown' | 'ok' | 'warning' | 'alert';
}

export interface NodeStatus {
  version: string;
  catalog: {generation: number; age_s: number; campaigns: number; ad_groups: number; currency: string; error: string | null; unreadable: string | null; waits_for_pid: number | null};
  stop_list_entries?: number;
  stopped?: {what: string; by: string; at: string; reason: string; ad_groups: number}[];
  ad_groups: GroupStatus[];
  campaigns: CampaignStatus[];
  health: Record<string, Sign>;
  curves: {placement: string | null; warm: boolean; requests: number; hours: number[]}[];
  events: Record<string, number>;
  traffic: Record<string, {gross: number; net: number}>;
  invalid: Record<string, number>;
  pages: Record<string, number>;
  dedupe: {evicted: number};
  spool: {segments: number; bytes: number; damaged_records: number; damaged_bytes: number; slow_writes: number; slow_write_ms: number; longest_write_ms: number};
  postgres: {shipped: number; repeated: number; quarantined: number; error: string | null} | null;
  keeper: {pid: number; term: number; silent_ms: number} | null;
  limits: ({zone: string; rate: number; window_s: number} & Record<string, number | string>)[];
  zone: {size: number; used: number};
}

const often = 2000;
const seldom = 5000;

/** The node, without its campaigns. */
export const nodeStatus = (): Poll<NodeStatus> => poll<NodeStatus>('ads_status', 'status?limit=1', often);
/** With its first 1,000 campaigns and ad groups. */
export const fullStatus = (): Poll<NodeStatus> => poll<NodeStatus>('ads_status', 'status?limit=1000', seldom);
export const campaignStatus = (id: number | string): Poll<NodeStatus> => poll<NodeStatus>('ads_status', `status?campaign=${id}&limit=1000`, often);
export const groupStatus = (id: number | string): Poll<NodeStatus> => poll<NodeStatus>('ads_status', `status?ad_group=${id}`, often);
