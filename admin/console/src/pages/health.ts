// Health: does the node serve the right catalog, are events safe, how far is it to the limits.
import {fleet, type SharedLimit} from '../core/fleet.ts';
import {bytes, count, money, plural, ratio, share, span} from '../core/format.ts';
import {nodeProblems} from '../core/problems.ts';
import {session} from '../core/session.ts';
import {nodeStatus, type NodeStatus} from '../core/status.ts';
import type {Store} from '../core/store.ts';
import {bar} from '../ui/chart.ts';
import {problemList} from '../ui/problems.ts';
import {source, waiting} from '../ui/source.ts';
import {facts, table} from '../ui/table.ts';
import {command, commandLine} from '../ui/command.ts';
import {define, html, nothing, View, type TemplateResult} from '../ui/view.ts';

const types = ['serve', 'impression', 'viewable', 'click', 'conversion'];
const reasons: Record<string, string> = {
  ignored: 'left out by ads_ignore', late: 'the reservation was over and the limit reached', over_budget: 'the budget was used up', bot: 'not the user agent of a browser',
  prefetch: 'fetched ahead of a visit', network: 'from a listed network', user_agent: 'a click by another user agent than that of its serve', too_fast: 'a click sooner than a person could',
  no_impression: 'a click on what was not seen', rapid_fire: 'one of too many clicks', rate_limit: 'over a silent rate limit', mismatch: 'creative, ad group and campaign do not belong together',
};
const signNames: Record<string, string> = {serves_per_impression: 'Ads served per impression', pixel_delay_s: 'Median time from serve to impression, s', limits_passed: 'Budgets and caps exceeded'};

class HealthPage extends View {
  private readonly node = nodeStatus();
  private readonly fleet = fleet();

  protected override stores(): Store<unknown>[] {
    return [this.node, ...session.may('fleet') ? [this.fleet] : []];
  }

  private nodes(): TemplateResult | typeof nothing {
    const {nodes = [], limits = []} = this.fleet.value ?? {};
    const known = nodes.filter(({state}) => state !== 'forgotten');
    if (known.length === 0) {
      return nothing;
    }
    const units = ({unit}: SharedLimit, n: number) => unit === 'micro_cents' ? money(n / 1e6) : count(n);
    const short = limits.filter(({stranded}) => stranded > 0);
    const silent = known.filter(({state}) => state === 'silent');
    return html`<section class="section"><div class="section-head"><h2>Nodes</h2>${source(this.fleet)}</div>
      ${table({
        caption: 'Nodes of the fleet', rows: known, identify: row => row.node,
        columns: [
          {name: 'Node', by: row => row.name, cell: row => html`${row.name || row.node}<span class="cell-note">${row.version}</span>`},
          {name: 'State', by: row => row.state, cell: row => html`<span class="chip ${row.state === 'active' ? 'ok' : 'alert'}">${row.state}</span>`},
          {name: 'Called', number: true, by: row => row.silent_seconds, cell: row => `${span(row.silent_seconds)} ago`},
          {name: 'Catalog', number: true, title: 'how many catalogs the node has published since its zone was created', cell: row => `generation ${row.generation}`},
          {name: 'Limits', cell: row => row.exactness},
          {name: 'Holds rights of', number: true, wide: true, cell: row => plural(row.limits, 'limit')},
        ],
      })}
      ${short.length ? html`<h3 class="spaced">Stranded on silent nodes</h3>${table({
        caption: 'Limits that are short', rows: short, identify: row => `${row.kind}-${row.id}-${row.day}`,
        columns: [
          {name: 'Limit', cell: row => html`${row.name || row.id}<span class="cell-note">${row.kind}${row.day ? ', today' : ', in total'}</span>`},
          {name: 'Of', number: true, cell: row => units(row, row.limit)},
          {name: 'Used', number: true, cell: row => units(row, row.used)},
          {name: 'Stranded', number: true, cell: row => html`<b>${units(row, row.stranded)}</b>`},
          {name: 'Free', number: true, cell: row => units(row, row.free)},
        ],
      })}<p class="dim">Start the node again: it gives back what it does not need. If it is lost for good:</p>${silent.map(node => command(commandLine('fleet', 'forget', node.name || node.node)))}` : nothing}</section>`;
  }

  private catalog({catalog, keeper}: NodeStatus): TemplateResult {
    return html`<section class="section"><div class="section-head"><h2>Catalog</h2>${source(this.node)}</div>${facts([
      ['Generation', count(catalog.generation)],
      ['Published', `${span(catalog.age_s)} ago`],
      ['Holds', `${count(catalog.campaigns)} campaigns, ${count(catalog.ad_groups)} ad groups`],
      ['Last edit', catalog.error ? html`<span class="chip alert">refused</span>` : html`<span class="chip ok">accepted</span>`],
      ['Keeper', keeper ? `pid ${keeper.pid}, last heartbeat ${(keeper.silent_ms / 1000).toFixed(1)} s ago` : 'none yet'],
    ])}</section>`;
  }

  private events({events, spool, postgres}: NodeStatus): TemplateResult {
    return html`<section class="section"><div class="section-head"><h2>Events</h2>${source(this.node)}</div>${facts([
      ['Written', count(events['written'])],
      ['Lost', html`${count(events['dropped'])} ${events['dropped'] ? html`<span class="chip alert">lost</span>` : ''}`],
      ['Counted once', `${count(events['duplicate'])} repeated tokens were not counted again`],
      ['In the spool', `${plural(spool.segments, 'segment')}, ${bytes(spool.bytes)}`],
      ['Slowest write', spool.slow_writes ? `${spool.longest_write_ms} ms, ${count(spool.slow_writes)} of 100 ms or more` : 'below 100 ms'],
      ['Sent to PostgreSQL', postgres ? `${count(postgres.shipped)}; ${count(postgres.quarantined)} refused` : 'not configured: events stay in the spool'],
    ])}</section>`;
  }

  private room({zone, dedupe, limits}: NodeStatus): TemplateResult {
    const used = zone.used / zone.size;
    return html`<section class="section"><div class="section-head"><h2>Room</h2>${source(this.node)}</div>${facts([
      ['Zone', html`${bytes(zone.used)} of ${bytes(zone.size)}, ${share(used)}${bar(used, 0.9, used > 0.9 ? 'over' : '')}`],
      ['Dedupe', dedupe.evicted ? html`<span class="chip warning">too small</span> ${count(dedupe.evicted)} removed early` : 'no entry was removed before it expired'],
    ])}${limits.length ? table({
      caption: 'Rate limits', rows: limits, identify: row => row.zone,
      columns: [
        {name: 'Rate limit', cell: row => row.zone},
        {name: 'Allows', cell: row => `${count(row.rate)} per ${span(row.window_s)}`},
        {name: 'Refused', number: true, cell: row => count(Number(row['refused']))},
        {name: 'Full', number: true, cell: row => share(ratio(Number(row['entries']), Number(row['capacity'])))},
      ],
    }) : ''}</section>`;
  }

  private signs({health}: NodeStatus): TemplateResult {
    return html`<section class="section"><div class="section-head"><h2>Signs of delivery</h2>${source(this.node)}</div>${facts(Object.entries(health).map(([name, {value, status}]) =>
      [signNames[name] ?? name.replaceAll('_', ' '), html`${value === null ? 'too few events to tell' : Number.isInteger(value) ? count(value) : value.toFixed(2)} <span class="chip ${status}">${status}</span>`]))}</section>`;
  }

  private traffic({traffic, invalid}: NodeStatus): TemplateResult {
    const all = Object.values(traffic).reduce((sum, {gross}) => sum + gross, 0);
    return html`<section class="section"><div class="section-head"><h2>Counted traffic</h2><span class="dim">since the state was created</span>${source(this.node)}</div>
      ${table({
        caption: 'Events of the node', rows: types.filter(type => traffic[type]), identify: type => type,
        columns: [
          {name: 'Event', cell: type => type},
          {name: 'All', number: true, cell: type => count(traffic[type]!.gross)},
          {name: 'Valid', number: true, cell: type => count(traffic[type]!.net)},
          {name: 'Invalid', number: true, cell: type => share(ratio(traffic[type]!.gross - traffic[type]!.net, traffic[type]!.gross))},
        ],
      })}
      ${table({
        caption: 'Invalid events by reason', rows: Object.entries(invalid).sort((a, b) => b[1] - a[1]), identify: ([name]) => name, empty: 'No event was invalid.',
        columns: [
          {name: 'Invalid because of', cell: ([name]) => html`${name.replaceAll('_', ' ')}${reasons[name] ? html`<span class="cell-note">${reasons[name]}</span>` : ''}`},
          {name: 'Events', number: true, cell: ([, events]) => count(events)},
          {name: 'Of all', number: true, cell: ([, events]) => share(ratio(events, all))},
        ],
      })}</section>`;
  }

  protected override render(): TemplateResult {
    const node = this.node.value;
    return html`<div class="head"><h1>Health</h1></div>
      ${node ? html`${problemList(nodeProblems(node), 'Nothing is wrong with this node.')}
        <div class="columns even">${this.catalog(node)}${this.events(node)}${this.room(node)}${this.signs(node)}</div>
        ${this.nodes()}${this.traffic(node)}
        <section class="section"><h2>The same in a terminal</h2>${command(commandLine('doctor', '--status-url', new URL('status', document.baseURI).href))}</section>` : waiting(this.node)}`;
  }
}

define('page-health', HealthPage);
