// Today: what is wrong now, how the day goes, and whether each campaign will deliver.
import {change, compact, count, money, price, rate, ratio, share, span, time} from '../core/format.ts';
import {live, type LiveEvent} from '../core/live.ts';
import {campaignName, campaignRows} from '../core/names.ts';
import {nodeProblems, type Problem} from '../core/problems.ts';
import {byHour, hourNow, lastWeekReport, todayReport, until, type Summed} from '../core/report.ts';
import {session} from '../core/session.ts';
import {fullStatus} from '../core/status.ts';
import type {Store} from '../core/store.ts';
import {allWhy} from '../core/why.ts';
import {chart} from '../ui/chart.ts';
import {problemList, tile} from '../ui/problems.ts';
import {readable, withoutCommands} from '../ui/prose.ts';
import {source, waiting} from '../ui/source.ts';
import {define, html, nothing, View, type TemplateResult} from '../ui/view.ts';
import './campaign-list.ts';

const metrics: [figure: Summed, name: string][] = [['impressions', 'Impressions'], ['requests', 'Requests'], ['serves', 'Ads served'], ['clicks', 'Clicks'], ['spend_cents', 'Revenue']];
const mostProblems = 6;
const farBehind = 0.5;
const early = 0.1;

class TodayPage extends View {
  static override properties = {figure: {state: true}};
  declare private figure: Summed;
  private readonly node = fullStatus();
  private readonly today = todayReport();
  private readonly lastWeek = lastWeekReport();
  private readonly why = allWhy();
  private readonly rows = campaignRows();

  constructor() {
    super();
    this.figure = 'impressions';
  }

  protected override stores(): Store<unknown>[] {
    return [
      ...session.seesNode ? [live, this.node] : [],
      ...session.managed ? [this.today, this.lastWeek, this.rows] : [],
      ...session.may('why') ? [this.why] : [],
    ];
  }

  // ---- what is wrong ----

  private problems(): TemplateResult {
    const list: Problem[] = this.node.value ? nodeProblems(this.node.value) : [];
    const groups = (this.why.value?.ad_groups ?? []).filter(({verdict}) => verdict === 'blocked' || verdict === 'limited');
    for (const {ad_group: id, name, campaign, campaign_name: of, verdict, causes, delivery} of groups.slice(0, mostProblems)) {
      const where = `${of || `Campaign ${campaign}`}, ${name || `ad group ${id}`}`;
      list.push({
        level: verdict === 'blocked' ? 'alert' : 'warning', about: 'delivery', link: `#/why/${id}`,
        what: `${where} ${verdict === 'blocked' ? 'cannot be served' : delivery === null ? 'delivers less than it could' : `has delivered ${share(delivery)} of what it should have by now`}${causes[0] ? `. ${readable(causes[0].what).replace(/\.$/, '')}` : ''}`,
        remedy: causes[0] ? withoutCommands(causes[0].remedy) : 'Nothing is in its way: only more requests that match would help',
      });
    }
    // Without an API the node's own pace has to do.
    for (const {id, name, pace, day_seconds: day, elapsed_seconds: elapsed} of session.managed ? [] : this.node.value?.campaigns ?? []) {
      if (pace.status === 'under_pace' && (pace.utilization ?? 1) < farBehind && elapsed > early * day) {
        list.push({level: 'warning', about: 'delivery', link: `#/why/campaign-${id}`, what: `${name || `Campaign ${id}`} has delivered ${share(pace.utilization)} of what it should have by now`, remedy: 'Look at what keeps its ad groups from being served'});
      }
    }
    const known = this.node.at || this.why.at || !session.seesNode;
    return html`<section aria-label="Problems">${known ? problemList(list, session.seesNode ? 'Nothing is wrong: the node is well, and all active campaigns deliver.' : 'Nothing is wrong.') : html`<p class="notice" aria-busy="true">Looking for problems…</p>`}
      ${groups.length > mostProblems ? html`<p><a href="#/why">${groups.length - mostProblems} more ad groups that deliver too little</a></p>` : nothing}</section>`;
  }

  // ---- the figures ----

  private managedTiles(): TemplateResult {
    const report = this.today.value;
    if (!report) {
      return waiting(this.today);
    }
    const {total, currency} = report;
    const last = this.lastWeek.value;
    const hour = hourNow();
    const then = (figure: Summed) => last ? until(last.rows, figure, hour) : null;
    const compared = (figure: Summed) => {
      const difference = change(total[figure], then(figure));
      return difference ? html`${difference} on last week` : last ? 'nothing a week ago' : '';
    };
    const points = (now: number | null, part: Summed, all: Summed, rest = false) => {
      const [a, b] = [then(part), then(all)];
      const was = a == null || !b ? null : rest ? 1 - a / b : a / b;
      return now == null || was == null ? '' : html`${share(was)} a week ago`;
    };
    return html`<dl class="tiles">
        ${total.requests == null ? nothing : html`${tile('Requests', count(total.requests), compared('requests'))}${tile('Fill', share(total.fill_rate), points(total.fill_rate, 'unfilled', 'requests', true))}`}
        ${tile('Impressions', count(total.impressions), compared('impressions'))}
        ${tile('Viewable', share(total.viewable_rate), points(total.viewable_rate, 'viewables', 'impressions'))}
        ${tile('Clicks', count(total.clicks), html`${share(total.ctr, 2)} CTR`)}
        ${tile('Revenue', money(total.spend_cents, currency), compared('spend_cents'))}</dl>
      <p class="tiles-note"><span>Today until now; last week: the same day by the same time. Nodes tell requests and fill once a minute.</span>${source(this.today)}</p>`;
  }

  private nodeTiles(): TemplateResult {
    const frame = live.value;
    if (!frame) {
      return waiting(live);
    }
    const unfilled = Object.values(frame.unfilled).reduce((sum, n) => sum + n, 0);
    const per = (total: 'requests' | 'impressions') => live.average(total) === null ? '' : `${rate(live.average(total))} per second`;
    return html`<dl class="tiles">
        ${tile('Requests', count(frame.requests), per('requests'))}
        ${tile('Fill', share(ratio(frame.placements - unfilled, frame.placements)), `${count(frame.placements)} placements`)}
        ${tile('Impressions', count(frame.impressions), per('impressions'))}
        ${tile('Viewable', share(ratio(frame.viewables, frame.impressions)), count(frame.viewables))}
        ${tile('Clicks', count(frame.clicks), html`${share(ratio(frame.clicks, frame.impressions), 2)} CTR`)}
        ${tile('Revenue', money(frame.spend_cents, this.node.value?.catalog.currency), '')}</dl>
      <p class="tiles-note"><span>Of this node, since its state was created.</span>${source(live)}</p>`;
  }

  // ---- the curve ----

  private curve(): TemplateResult {
    const report = this.today.value;
    if (!report) {
      return waiting(this.today);
    }
    const name = metrics.find(([figure]) => figure === this.figure)![1];
    const text = (value: number | null) => this.figure === 'spend_cents' ? money(value, report.currency) : count(value);
    const hour = hourNow();
    const now = byHour(report.rows, this.figure).map((value, i) => i <= hour ? value ?? 0 : null);
    const last = this.lastWeek.value ? byHour(this.lastWeek.value.rows, this.figure).map(value => value ?? 0) : [];
    const total = report.total[this.figure];
    const then = this.lastWeek.value ? until(this.lastWeek.value.rows, this.figure, hour) : null;
    const difference = change(total, then);
    const finding = `${text(total)} ${this.figure === 'spend_cents' ? 'of revenue' : name.toLowerCase()} so far today${difference ? `, ${difference} on the same time last week` : ''}.`;
    return html`<div class="filters"><div class="field"><label for="curve-of">Today’s curve of</label><select id="curve-of" @change=${(event: Event) => { this.figure = (event.target as HTMLSelectElement).value as Summed; }}>
        ${metrics.filter(([figure]) => report.total[figure] != null).map(([figure, label]) => html`<option value=${figure} ?selected=${figure === this.figure}>${label}</option>`)}</select></div></div>
      ${chart({
        finding, name: `${name} by hour`, x: [...now.keys()], xName: 'Hour', xText: x => `${String(x).padStart(2, '0')}:00`, ticks: [0, 6, 12, 18], range: [0, 23], text,
        yText: value => this.figure === 'spend_cents' ? compact(value / 100) : compact(value),
        lines: [{name: 'Today', values: now, color: 'main', filled: true}, ...last.length ? [{name: 'Last week', values: last, color: 'before' as const, dashed: true}] : []],
      })}`;
  }

  private now(): TemplateResult {
    const {frames} = live;
    const last = frames.at(-1);
    if (!last) {
      return waiting(live);
    }
    const x = frames.map(frame => (frame.time - last.time) / 1000);
    const of = (name: 'requests' | 'serves' | 'impressions') => frames.map(frame => frame.rates?.[name] ?? null);
    return chart({
      finding: live.average('requests') === null ? 'The stream has begun.' : `${rate(live.average('requests'))} requests, ${rate(live.average('serves'))} ads and ${rate(live.average('impressions'))} impressions per second.`,
      name: 'Per second', x, xName: 'Seconds ago', xText: value => value === 0 ? 'now' : `−${span(-value)}`, text: rate, range: [Math.min(-60, x[0]!), 0], height: 170,
      lines: [{name: 'Requests', values: of('requests'), color: 'before'}, {name: 'Ads served', values: of('serves'), color: 'main', filled: true}, {name: 'Impressions', values: of('impressions'), color: 'aim', dashed: true}],
    });
  }

  private event(event: LiveEvent): TemplateResult {
    return html`<li class=${event.type}><time datetime=${new Date(event.time).toISOString()}>${time(event.time)}</time><span class="type">${event.type}</span>
      <span><a href="#/campaign/${event.campaign}">${campaignName(event.campaign)}</a> <span class="dim">creative ${event.creative}</span></span>
      <span class=${event.invalid ? 'not-counted' : 'dim'}>${event.invalid ? `not counted: ${event.invalid.replaceAll('_', ' ')}` : event.cents ? price(event.cents) : ''}</span></li>`;
  }

  private feed(): TemplateResult {
    return html`<section class="section"><div class="section-head"><h2>Events</h2><span class="dim">a sample</span><button class="quiet aside" aria-pressed=${String(live.paused)} @click=${() => { live.paused = !live.paused; this.requestUpdate(); }}>${live.paused ? 'Continue' : 'Hold'}</button></div>
      ${live.events.length ? html`<ol class="feed" tabindex="0" aria-label="Events, the newest first">${live.events.map(event => this.event(event))}</ol>` : html`<p class="notice">Events appear here as they happen.</p>`}</section>`;
  }

  protected override render(): TemplateResult {
    return html`<div class="head"><h1>Today</h1></div>
      ${session.seesNode || session.may('why') ? this.problems() : nothing}
      <section class="section" aria-label="Figures">${session.managed ? this.managedTiles() : this.nodeTiles()}</section>
      <section class="section"><div class="section-head"><h2>Campaigns</h2></div><campaign-list></campaign-list></section>
      ${session.managed ? html`<section class="section">${this.curve()}</section>` : nothing}
      ${session.seesNode ? html`<div class="columns even"><section class="section"><div class="section-head"><h2>Now</h2>${source(live)}</div>${this.now()}</section>${this.feed()}</div>` : nothing}`;
  }
}

define('page-today', TodayPage);
