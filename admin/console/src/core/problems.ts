// What is wrong with a node, and what to do: the thresholds of nginx-ads doctor and of conf/prometheus-rules.yml.
import {bytes, count, money, plural, span} from './format.ts';
import type {NodeStatus} from './status.ts';

export interface Problem {
  level: 'alert' | 'warning';
  /** What it is about: "catalog". */
  about: string;
  what: string;
  remedy: string;
  /** Where more is known. */
  link?: string;
}

const keeperSilent = 3000;
const zoneNearlyFull = 0.9;

/** Budgets and caps of which more is used than there is, with names. */
const exceeded = ({campaigns, ad_groups: groups, catalog: {currency}}: NodeStatus): string[] => [
  ...campaigns.filter(({budget}) => budget && budget.used > budget.amount).map(({id, name, budget}) => `the budget of ${name || `campaign ${id}`}, ${money(budget!.used)} of ${money(budget!.amount, currency)}`),
  ...groups.flatMap(({id, limits}) => limits.filter(({used, amount}) => used > amount).map(({of, used, amount}) => `the ${of} of ad group ${id}, ${count(used)} of ${count(amount)}`)),
];

const signs: Record<string, {what: (value: string) => string; remedy: string}> = {
  serves_per_impression: {
    what: value => `${value} ads are served per impression; 1.05 to 1.15 is healthy`,
    remedy: 'Too high: pages do not show the ads they request, or lose pixels. Too low: pixels reach another node than serves.',
  },
  pixel_delay_s: {what: value => `half of the impressions come ${value} s or more after their serve; below 30 s is healthy`, remedy: 'Ads are fetched long before they are shown, or the network is slow.'},
  limits_passed: {what: value => `${value === '1' ? '1 budget or cap is' : `${value} budgets or caps are`} exceeded`, remedy: 'A lower budget or a stop in the middle of the day does this, and it goes at midnight. nginx-ads pacing lists them.'},
};

export const nodeProblems = (node: NodeStatus): Problem[] => {
  const list: Problem[] = [];
  const add = (level: Problem['level'], about: string, what: string, remedy: string, link = '#/health') => list.push({level, about, what, remedy, link});
  const {catalog, keeper, postgres, spool, events, zone} = node;
  if (catalog.error) {
    add('alert', 'catalog', `The last edit of the catalog was refused: ${catalog.error}`, 'The node serves the previous catalog. Correct the edit; nginx-ads validate shows every fault.');
  }
  if (catalog.unreadable) {
    add('alert', 'catalog', `The catalog cannot be read: ${catalog.unreadable}`, 'The node serves the last one. See the error log of nginx.');
  }
  if (catalog.waits_for_pid !== null) {
    add('warning', 'catalog', `A new catalog waits for the worker ${catalog.waits_for_pid}, which still reads the old one`, 'The worker hangs or is stopped: continue it, or end it.');
  }
  if (keeper && keeper.silent_ms > keeperSilent) {
    add('alert', 'keeper', `The keeper has been silent for ${span(keeper.silent_ms / 1000)}`, 'No pacing, no shipping and no new catalog until it is back. See the error log of nginx; is the process stopped or short of CPU?');
  }
  if (postgres?.error) {
    add('alert', 'events', `Events cannot be sent to PostgreSQL: ${postgres.error}`, `Nothing is lost: ${bytes(spool.bytes)} wait in the spool. Run nginx-ads doctor.`);
  }
  if (postgres && postgres.quarantined > 0) {
    add('warning', 'events', `PostgreSQL has refused ${plural(postgres.quarantined, 'event')}`, 'The reasons are in SPOOL/quarantine/*.txt.');
  }
  if ((events['dropped'] ?? 0) > 0) {
    add('alert', 'events', `${plural(events['dropped']!, 'event')} could not be written and ${events['dropped'] === 1 ? 'is' : 'are'} lost`, 'The disk of the spool was full or failed: free space, and see the error log of nginx.');
  }
  if (spool.damaged_records > 0) {
    add('alert', 'spool', `${plural(spool.damaged_records, 'record')} of the spool ${spool.damaged_records === 1 ? 'was' : 'were'} damaged`, 'Check the disk and the memory. The bytes are in SPOOL/quarantine/*.damaged.');
  }
  if (spool.slow_writes > 0) {
    add('warning', 'spool', `${plural(spool.slow_writes, 'write')} to the spool took 100 ms or more, the longest ${spool.longest_write_ms} ms`, 'All requests of a worker wait for a write: put the spool on a faster disk.');
  }
  if (node.dedupe.evicted > 0) {
    add('warning', 'dedupe', `${count(node.dedupe.evicted)} entries of the dedupe table were removed before they expired`, 'Enlarge dedupe= of ads_state: a token could count twice.');
  }
  if (zone.used / zone.size > zoneNearlyFull) {
    add('warning', 'zone', `The zone is ${Math.round(zone.used / zone.size * 100)} % full`, 'Enlarge ads_zone: a catalog that does not fit is refused.');
  }
  for (const [name, sign] of Object.entries(node.health)) {
    if (sign.status === 'alert' || sign.status === 'warning') {
      const words = signs[name];
      const value = String(Math.round((sign.value ?? 0) * 100) / 100);
      const which = name === 'limits_passed' ? exceeded(node) : [];
      const list = which.length ? `: ${which.slice(0, 3).join('; ')}${which.length > 3 ? `; and ${which.length - 3} more` : ''}` : '';
      add(sign.status, 'delivery', words ? words.what(value).replace(/^./, first => first.toUpperCase()) + list : `${name} is ${value}`, words?.remedy ?? 'See docs/metrics.md.');
    }
  }
  for (const stop of node.stopped ?? []) {
    add('alert', 'stop', `Stopped on this node: ${stop.what}, by ${stop.by || 'unknown'}${stop.reason ? `: ${stop.reason}` : ''}`, `nginx-ads start lifts it.`);
  }
  return list.sort((a, b) => Number(b.level === 'alert') - Number(a.level === 'alert'));
};
