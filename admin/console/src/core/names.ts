// Names of campaigns, for ids in figures.
import {poll} from './poll.ts';
import {session} from './session.ts';
import {fullStatus} from './status.ts';
import type {Store} from './store.ts';

export interface CampaignRow {
  id: number;
  name: string;
  advertiser: string | null;
  status: string;
  start: string | null;
  end: string | null;
  timezone?: string;
  budget: {type: 'daily' | 'lifetime'; amount_cents: number} | null;
  ad_groups?: unknown;
  delivery: {of: 'day' | 'flight' | null; spent_cents: number; budget_cents: number | null; delivered: number | null; aim: number | null; active_ad_groups: number};
}

const every = 10_000;

export const campaignRows = () => poll<CampaignRow[]>('PostgreSQL', 'api/campaigns', every);

/** What tells the names, to be followed. */
export const namesStore = (): Store<unknown> => session.managed ? campaignRows() : fullStatus();

export const campaignName = (id: number): string => {
  const list: {id: number; name: string}[] | undefined = session.managed ? campaignRows().value : fullStatus().value?.campaigns;
  return list?.find(campaign => campaign.id === id)?.name ?? `campaign ${id}`;
};
