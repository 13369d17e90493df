// Why: what keeps an ad group from being served, by stage, and what each stage would give back.
import {count, share, ratio} from '../core/format.ts';
import type {Poll} from '../core/poll.ts';
import {address} from '../core/router.ts';
import {session} from '../core/session.ts';
import {campaignStatus, fullStatus, groupStatus, type GroupStatus, type NodeStatus} from '../core/status.ts';
import type {Store} from '../core/store.ts';
import {allWhy, campaignWhy, groupWhy, type Cause, type Diagnoses, type Diagnosis} from '../core/why.ts';
import {bar} from '../ui/chart.ts';
import {command, commandLine} from '../ui/command.ts';
import {commandsIn, readable, withoutCommands} from '../ui/prose.ts';
import {source, waiting} from '../ui/source.ts';
import {table} from '../ui/table.ts';
import {define, html, nothing, View, type TemplateResult} from '../ui/view.ts';

interface Reason {
  stage: string;
  what: string;
  /** What would let these requests pass. */
  whatIf: string;
}

// In the order in which a decision looks at them.
export const reasons: Record<string, Reason> = {
  status: {stage: 'Targeting', what: 'it, its campaign or the placement was not active', whatIf: 'resume it'},
  flight: {stage: 'Targeting', what: 'before its start or after its end', whatIf: 'extend the flight'},
  schedule: {stage: 'Targeting', what: 'outside its hours', whatIf: 'widen the hours'},
  creative: {stage: 'Targeting', what: 'no creative of the size and type of the placement', whatIf: 'add a creative that fits'},
  floor: {stage: 'Targeting', what: 'its price was below the floor of the placement', whatIf: 'raise the price, or lower the floor'},
  weight: {stage: 'Targeting', what: 'its weight is 0', whatIf: 'give it a weight'},
  device: {stage: 'Targeting', what: 'another device', whatIf: 'target more devices'},
  geo: {stage: 'Targeting', what: 'another country or region', whatIf: 'target more countries'},
  language: {stage: 'Targeting', what: 'another language', whatIf: 'target more languages'},
  key: {stage: 'Targeting', what: 'other key-values of the page', whatIf: 'loosen the key-values'},
  url: {stage: 'Targeting', what: 'another page', whatIf: 'loosen the URL patterns'},
  frequency: {stage: 'Frequency', what: 'the visitor has seen it often enough', whatIf: 'raise the frequency cap'},
  page: {stage: 'Draw', what: 'it was on the page already', whatIf: 'it needs no change'},
  exclusive: {stage: 'Draw', what: 'a competitor was on the page', whatIf: 'drop the exclusion'},
  together: {stage: 'Draw', what: 'its set could not be filled as a whole', whatIf: 'look at the others of its set'},
  pacing: {stage: 'Pacing', what: 'held back, to spread the day’s limit', whatIf: 'raise the limit, or pace asap'},
  cap: {stage: 'Budget', what: 'its budget, cap or goal was reached', whatIf: 'raise the budget or cap'},
  rights: {stage: 'Budget', what: 'the rest of its budget or cap was with other nodes', whatIf: 'see the limits of the fleet in Health'},
  lost: {stage: 'Draw', what: 'another ad group was drawn', whatIf: 'raise its weight, price or priority'},
};
const stages = ['Targeting', 'Frequency', 'Draw', 'Pacing', 'Budget'];

interface Counts {
  day: string | null;
  serves: number;
  impressions: number;
  viewables: number;
  clicks: number;
  refused: {reason: string; count: number; estimate: boolean}[];
}

const countsOfNode = (group: GroupStatus): Counts => ({...group, refused: Object.entries(group.refused).map(([reason, n]) => ({reason, count: n, estimate: group.sampled.includes(reason)}))});
const countsOf = (d: Diagnosis): Counts | null => {
  if (d.serves === null) {
    return null;
  }
  // A node of a fleet sees only that it has no rights left; when the limit is used up, that is why.
  const usedUp = d.causes.some(({reason, extent}) => extent === 'all' && ['budget', 'cap', 'goal'].includes(reason));
  const refused = new Map<string, Counts['refused'][number]>();
  for (const one of d.refused ?? []) {
    const reason = usedUp && one.reason === 'rights' ? 'cap' : one.reason;
    refused.set(reason, {reason, count: one.count + (refused.get(reason)?.count ?? 0), estimate: one.estimate || (refused.get(reason)?.estimate ?? false)});
  }
  return {day: d.day, serves: d.serves, impressions: d.impressions ?? 0, viewables: d.viewables ?? 0, clicks: d.clicks ?? 0, refused: [...refused.values()]};
};

const verdicts: Record<Diagnosis['verdict'], string> = {blocked: 'cannot be served', limited: 'delivers less than it could', used_up: 'has used up its limit', off: 'is not meant to be served now', fine: 'is well'};
// Where a cause is put right, and at which field.
const fields: Record<string, string> = {geo: 'targeting.geos', device: 'targeting.devices', language: 'targeting.languages', weight: 'weight', price: 'price.amount_cents', floor: 'price.amount_cents', tier: 'priority', share: 'weight',
  frequency: 'frequency_caps', consent: 'frequency_caps', cap: 'pacing.daily_impression_cap', goal: 'pacing.goal', pacing: 'pacing.strategy', placement: 'targeting.placements', creative: 'targeting.placements'};
const fieldOf = ({reason, what}: Cause): string => reason === 'targeting' ? what.match(/targeting\.(geos|devices|languages|placements)/)?.[0] ?? '' : fields[reason] ?? '';
const operations: Record<string, string> = {campaign: 'getCampaign', 'ad-group': 'getAdGroup', creative: 'getCreative', placement: 'getPlacement'};
const pagesOf: Record<string, string> = {campaign: 'campaign', ad_group: 'ad-group', creative: 'creative', placement: 'placement'};

const remedyLink = (cause: Cause): TemplateResult | typeof nothing => {
  const page = pagesOf[cause.object.kind];
  const route = page && session.may(operations[page]!);
  const field = page === 'ad-group' ? fieldOf(cause) : page === 'campaign' && ['budget', 'flight'].includes(cause.reason) ? cause.reason : '';
  return route ? html`<a href=${address(page!, cause.object.id, field ? {edit: field} : {})}>Change it</a>` : html`<span></span>`;
};

const extents = {all: 'Enough alone to keep it from being served', some: 'Keeps some requests from it', maybe: 'May keep requests from it'};

/** The way of the requests that it could have had, from all to clicks. */
export const funnel = (counts: Counts): TemplateResult => {
  const refused = counts.refused.reduce((sum, one) => sum + one.count, 0);
  const all = counts.serves + refused;
  if (all === 0) {
    return html`<p class="notice">No request today could have had it: its placements have not been requested since midnight in its time zone.</p>`;
  }
  const about = (n: number, estimate: boolean) => `${estimate ? '~' : ''}${count(n)}`;
  let left = all;
  const sampled = counts.refused.some(one => one.estimate);
  const rows: {name: unknown; left: number; lost: number; estimate: boolean; of: number | null; base: string; reasons: Counts['refused']}[] =
    [{name: 'Opportunities', left: all, lost: 0, estimate: sampled, of: null, base: '', reasons: []}];
  for (const stage of stages) {
    const here = counts.refused.filter(one => (reasons[one.reason]?.stage ?? 'Draw') === stage && one.count > 0).sort((a, b) => b.count - a.count);
    const lost = here.reduce((sum, one) => sum + one.count, 0);
    left -= lost;
    rows.push({name: `after ${stage.toLowerCase()}`, left, lost, estimate: here.some(one => one.estimate) || (sampled && stage === 'Targeting'), of: null, base: '', reasons: here});
  }
  const then: [string, number, number, string][] = [['Served', counts.serves, all, 'opportunities'], ['Impressions', counts.impressions, counts.serves, 'what was served'], ['Viewable', counts.viewables, counts.impressions, 'impressions'], ['Clicks', counts.clicks, counts.impressions, 'impressions']];
  return html`${table({
    caption: `Of ${count(all)} opportunities, ${count(counts.serves)} were served`, limit: 20,
    rows: [...rows, ...then.map(([name, n, of, base]) => ({name: html`<b>${name}</b>`, left: n, lost: 0, estimate: false, of: ratio(n, of), base, reasons: [] as Counts['refused']}))],
    columns: [
      {name: 'Stage', cell: row => row.name},
      {name: 'Left', number: true, cell: row => about(row.left, row.estimate)},
      {name: '', wide: true, cell: row => bar(row.left / all)},
      {name: 'Lost here', cell: row => row.lost ? html`<b>${about(row.lost, row.estimate)}</b>${row.reasons.map(one => html`<span class="cell-note">${about(one.count, one.estimate)} ${one.reason}: ${reasons[one.reason]?.what ?? ''}</span>`)}` : row.of !== null ? html`<span class="dim">${share(row.of)} of ${row.base}</span>` : ''},
    ],
  })}
  ${sampled ? html`<p class="dim">~ is scaled from one request in 64.</p>` : nothing}`;
};

const whatIf = (counts: Counts, group: number, causes: Cause[] = []): TemplateResult => {
  const list = counts.refused.filter(one => one.count > 0).sort((a, b) => b.count - a.count);
  const all = counts.serves + list.reduce((sum, one) => sum + one.count, 0);
  if (list.length === 0 && all > 0) {
    return causes.some(({extent}) => extent === 'all') ? html`<p class="notice">What stands above. No refused request has been counted yet: targeting is counted from one request in 64.</p>`
      : html`<p class="notice">It was served for every request that it could have had. Only more of these would help: more placements, more traffic, or a longer flight.</p>`;
  }
  // What is used up may be the campaign's, and is changed there.
  const budget = causes.find(({object, reason}) => object.kind === 'campaign' && reason === 'budget');
  const place = (reason: string): string | undefined => reason === 'cap' && budget && session.may('getCampaign') ? address('campaign', budget.object.id, {edit: 'budget'})
    : !session.may('updateAdGroup') ? undefined : fields[reason] ? address('ad-group', group, {edit: fields[reason]!}) : reason === 'status' ? address('ad-group', group) : undefined;
  return table({
    caption: 'What each reason would give back at most', rows: list, identify: one => one.reason, empty: 'Nothing was refused today.',
    columns: [
      {name: 'If you', cell: one => html`${place(one.reason) ? html`<a href=${place(one.reason)!}>${reasons[one.reason]?.whatIf ?? one.reason}</a>` : reasons[one.reason]?.whatIf ?? one.reason}<span class="cell-note">${one.reason}</span>`},
      {name: 'it could have at most', number: true, cell: one => html`${one.estimate ? '~' : ''}${count(one.count)} more`},
      {name: 'of its opportunities', number: true, wide: true, cell: one => share(ratio(one.count, all))},
    ],
  });
};

class WhyPage extends View {
  static override properties = {of: {}};
  declare of: string;
  private why: Poll<Diagnoses> | undefined;
  private node: Poll<NodeStatus> | undefined;

  private get campaign(): string {
    return this.of.startsWith('campaign-') ? this.of.slice('campaign-'.length) : '';
  }

  protected override stores(): Store<unknown>[] {
    if (session.managed) {
      this.why = this.campaign ? campaignWhy(this.campaign) : this.of ? groupWhy(this.of) : allWhy();
      return [this.why];
    }
    this.node = this.campaign ? campaignStatus(this.campaign) : this.of ? groupStatus(this.of) : fullStatus();
    return [this.node];
  }

  private diagnosis(d: Diagnosis): TemplateResult {
    const counts = countsOf(d);
    return html`<section class="section"><div class="section-head"><h2>${d.name || `Ad group ${d.ad_group}`}</h2><span class="chip ${d.verdict}">${verdicts[d.verdict]}</span><a href="#/campaign/${d.campaign}">${d.campaign_name || `campaign ${d.campaign}`}</a>
        ${d.delivery === null ? nothing : html`<span class="dim">${share(d.delivery)} of today’s plan</span>`}${source(this.why!)}</div>
      ${d.causes.length ? html`<ul class="problems">${d.causes.map(cause => html`<li class=${cause.extent === 'all' ? 'alert' : 'warning'}><span class="kind">${cause.reason}</span><span>${readable(cause.what)} <span class="dim">${extents[cause.extent]}${cause.placements.length ? `, in ${cause.placements.join(', ')}` : ''}.</span></span>${remedyLink(cause)}<span class="remedy">${withoutCommands(cause.remedy)} ${commandsIn(cause.remedy).map(line => html`<code>${line}</code> `)}</span></li>`)}</ul>`
        : d.verdict === 'fine' ? html`<p class="notice good">Nothing is in its way.</p>` : nothing}
      ${counts ? html`<h3 class="spaced">Today on this node${counts.day ? `, ${counts.day}` : ''}</h3>${funnel(counts)}<h3 class="spaced">What would change it</h3>${whatIf(counts, d.ad_group, d.causes)}` : html`<p class="dim">How often it was refused is not known: nginx-ads api has no --status-url.</p>`}
      ${command(commandLine('why', d.ad_group))}</section>`;
  }

  private all(every: Diagnosis[]): TemplateResult {
    const list = every.filter(d => d.verdict !== 'off');
    const off = every.filter(d => d.verdict === 'off');
    return html`<section class="section"><div class="section-head"><h2>Ad groups that deliver too little</h2><span class="dim">the worst first</span>${source(this.why!)}</div>${table({
      caption: 'Ad groups that deliver too little', rows: list, identify: d => d.ad_group, empty: 'None: all active ad groups deliver.',
      columns: [
        {name: 'Ad group', by: d => d.name, cell: d => html`<a href="#/why/${d.ad_group}">${d.name || `Ad group ${d.ad_group}`}</a><span class="cell-note">${d.campaign_name}</span>`},
        {name: 'Verdict', by: d => d.verdict, cell: d => html`<span class="chip ${d.verdict}">${verdicts[d.verdict]}</span>`},
        {name: 'Of today’s plan', number: true, by: d => d.delivery, cell: d => share(d.delivery)},
        {name: 'First cause', wide: true, cell: d => html`${readable(d.causes[0]?.what ?? 'nothing is in its way')}<span class="cell-note">${withoutCommands(d.causes[0]?.remedy ?? 'only more requests that match would help')}</span>`},
      ],
    })}${command(commandLine('why'))}</section>
      ${off.length ? html`<section class="section"><div class="section-head"><h2>Not meant to be served now</h2><span class="dim">paused, or outside of the flight</span></div>${table({
        caption: 'Ad groups that are not meant to be served now', rows: off, identify: d => d.ad_group, limit: 10,
        columns: [
          {name: 'Ad group', by: d => d.name, cell: d => html`<a href="#/why/${d.ad_group}">${d.name || `Ad group ${d.ad_group}`}</a><span class="cell-note">${d.campaign_name}</span>`},
          {name: 'Because', cell: d => html`${readable(d.causes[0]?.what ?? '')}`},
        ],
      })}</section>` : nothing}`;
  }

  private ofNode(): TemplateResult {
    const groups = this.node!.value!.ad_groups;
    if (this.of) {
      return html`${groups.length ? groups.map(group => html`<section class="section"><div class="section-head"><h2>Ad group ${group.id}</h2><span class="dim">${group.day}</span>${group.stopped ? html`<span class="chip stopped">stopped: ${group.stopped}</span>` : nothing}${source(this.node!)}</div>
        ${funnel(countsOfNode(group))}<h3 class="spaced">What would change it</h3>${whatIf(countsOfNode(group), group.id)}${command(commandLine('why', group.id, '--status-url', new URL('status', document.baseURI).href))}</section>`)
        : html`<p class="notice">The node has no such ad group.</p>`}`;
    }
    const refused = (group: GroupStatus) => Object.values(group.refused).reduce((sum, n) => sum + n, 0);
    const first = (group: GroupStatus) => Object.entries(group.refused).sort((a, b) => b[1] - a[1])[0];
    return html`<section class="section"><div class="section-head"><h2>Ad groups of this node</h2>${source(this.node!)}</div>${table({
      caption: 'Ad groups of this node', rows: groups.toSorted((a, b) => a.serves / (a.serves + refused(a) || 1) - b.serves / (b.serves + refused(b) || 1)), identify: group => group.id,
      columns: [
        {name: 'Ad group', by: group => group.id, cell: group => html`<a href="#/why/${group.id}">${group.id}</a> <span class="dim">campaign ${group.campaign}</span>`},
        {name: 'Served', number: true, by: group => group.serves, cell: group => count(group.serves)},
        {name: 'Refused', number: true, by: refused, cell: group => `~${count(refused(group))}`},
        {name: 'Mostly because of', cell: group => first(group) ? html`${first(group)![0]}<span class="cell-note">${reasons[first(group)![0]]?.what ?? ''}</span>` : '–'},
      ],
    })}</section>`;
  }

  protected override render(): TemplateResult {
    const from: Store<unknown> = this.why ?? this.node!;
    const list = this.why?.value?.ad_groups;
    return html`<div class="head"><h1>${this.campaign ? `Why ${list?.[0]?.campaign_name || `campaign ${this.campaign}`} does not deliver more` : this.of ? `Why ${list?.[0]?.name || `ad group ${this.of}`} is not served more` : 'Why'}</h1>${this.of ? html`<a href="#/why">All</a>` : nothing}</div>
      ${from.value === undefined ? waiting(from) : html`
        ${this.why?.value?.warnings.map(warning => html`<p class="notice">${warning}</p>`) ?? nothing}
        ${list ? this.of ? list.length ? list.map(d => this.diagnosis(d)) : html`<p class="notice">It has no ad groups.</p>` : this.all(list) : this.ofNode()}`}`;
  }
}

define('page-why', WhyPage);
