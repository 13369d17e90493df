// Figures of PostgreSQL's reports.
import {dayIn, hourIn, zone} from './format.ts';
import {poll, type Poll} from './poll.ts';
import {withQuery} from './http.ts';

export interface Figures {
  requests: number | null;
  unfilled: number | null;
  fill_rate: number | null;
  serves: number;
  impressions: number;
  viewables: number;
  viewable_rate: number | null;
  clicks: number;
  ctr: number | null;
  conversions: number;
  invalid: number;
  spend_cents: number;
  ecpm_cents: number | null;
}

export interface ReportRow extends Figures {
  key: string | number;
  name?: string;
  key2?: string | number;
  name2?: string;
}

export interface Report {
  by: string;
  from: string;
  to: string;
  currency: string | null;
  rows: ReportRow[];
  total: Figures;
}

export interface Forecast {
  summary: string;
  campaign: number;
  status: string;
  timezone: string;
  currency: string | null;
  flight: 'ahead' | 'running' | 'over';
  delivery: number | null;
  deliver_by: string | null;
  starts_on: string | null;
  ends_on: string | null;
  days_to_end: number | null;
  budget_type: 'daily' | 'lifetime' | null;
  budget_cents: number | null;
  spent_cents: number;
  average_daily_spend: number;
  days_remaining: number | null;
  exhaustion_date: string | null;
  will_exhaust_early: boolean;
  projected_total_spend: number;
  goal_count: number | null;
  goal_done: number | null;
  goal_projected: number | null;
  days: {day: string; spend_cents: number}[];
}

export type Summed = 'requests' | 'unfilled' | 'serves' | 'impressions' | 'viewables' | 'clicks' | 'conversions' | 'spend_cents';

export const report = (query: Record<string, string>, every = 10_000): Poll<Report> => poll<Report>('PostgreSQL', withQuery('api/report', query), every);

export const forecastOf = (id: number | string): Poll<Forecast> => poll<Forecast>('PostgreSQL', `api/campaigns/${id}/forecast`, 60_000);

/** Hour of the day of a row by hour: "2026-11-18T09:00" is 9. */
export const hourOf = (row: ReportRow): number => Number(String(row.key).slice(11, 13));

/** One figure of each hour of a day. */
export const byHour = (rows: readonly ReportRow[], figure: Summed): (number | null)[] => {
  const hours: (number | null)[] = new Array<null>(24).fill(null);
  for (const row of rows) {
    const hour = hourOf(row);
    hours[hour] = (hours[hour] ?? 0) + (row[figure] ?? 0);
  }
  return hours;
};

/** What a day had come to by a time of it; of the hour that had begun, its part. */
export const until = (rows: readonly ReportRow[], figure: Summed, hour: number): number =>
  byHour(rows, figure).reduce<number>((sum, value, i) => sum + (value ?? 0) * Math.min(1, Math.max(0, hour - i)), 0);

const week = 7 * 86_400_000;

/** Today by hour, and the same day of last week, in the time zone of who looks. */
export const todayReport = (more: Record<string, string> = {}): Poll<Report> => report({by: 'hour', from: 'today', timezone: zone, ...more});
export const lastWeekReport = (more: Record<string, string> = {}): Poll<Report> => {
  const day = dayIn(Date.now() - week);
  return report({by: 'hour', from: day, to: day, timezone: zone, ...more}, 300_000);
};
export const hourNow = (): number => hourIn(Date.now());

/** Four times in five, what is spent by the end lies between these; from how the last days differ. */
export const spendBand = (forecast: Forecast): [number, number] | null => {
  const full = forecast.days.slice(1, -1).map(day => day.spend_cents);
  const days = Math.min(forecast.days_to_end ?? Infinity, forecast.days_remaining ?? Infinity);
  if (full.length < 3 || !Number.isFinite(days) || days <= 0) {
    return null;
  }
  const mean = full.reduce((sum, value) => sum + value, 0) / full.length;
  const deviation = Math.sqrt(full.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (full.length - 1));
  const width = 1.28 * deviation * Math.sqrt(days);
  const most = forecast.budget_type === 'lifetime' ? forecast.budget_cents ?? Infinity : Infinity;
  return [Math.max(forecast.spent_cents, forecast.projected_total_spend - width), Math.min(most, forecast.projected_total_spend + width)];
};
