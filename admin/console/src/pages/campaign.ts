// A campaign: will it deliver, what is in it, who changed it; and the edits of every day.
import {count, day, dayIn, hourIn, money, plural, ratio, share, span} from '../core/format.ts';
import {live} from '../core/live.ts';
import type {HistoryEdit} from '../core/http.ts';
import {poll, type Poll} from '../core/poll.ts';
import {byHour, forecastOf, report, spendBand, type Forecast, type Report} from '../core/report.ts';
import {address, router} from '../core/router.ts';
import {session} from '../core/session.ts';
import {campaignStatus, type CampaignStatus, type NodeStatus} from '../core/status.ts';
import type {Store} from '../core/store.ts';
import type {CampaignRow} from '../core/names.ts';
import {act} from '../ui/actions.ts';
import {bar, chart, type Mark} from '../ui/chart.ts';
import {commandLine} from '../ui/command.ts';
import {edits} from '../ui/diff.ts';
import {centsOf, editForm, WrongInput, type Edit} from '../ui/edit.ts';
import {pace, paceOf, statusChip} from '../ui/pace.ts';
import {source, waiting} from '../ui/source.ts';
import {facts, table} from '../ui/table.ts';
import {define, html, nothing, View, type TemplateResult} from '../ui/view.ts';
import {createAdGroup} from './ad-group.ts';

interface GroupRow {
  id: number;
  name: string;
  status: string;
  price: {model: string; amount_cents: number} | null;
  delivery: {of: string; unit: string; done: number; target: number; delivered: number | null; aim: number | null} | null;
}

interface CreativeRow {
  id: number;
  ad_group: number;
  name: string;
  type: string;
  status: string;
  width?: number | null;
  height?: number | null;
  delivery: {impressions: number; clicks: number; ctr: number | null};
}

interface ExperimentRow {
  id: number;
  ad_group: number;
  name: string;
  status: string;
  delivery: {trials: number};
}

const seldom = 15_000;

/** Until a day, or for years: a date far away tells less than that. */
const lasts = ({exhaustion_date: at, days_remaining: days}: Forecast): string => (days ?? 0) > 730 ? `about ${Math.round(days! / 365)} years at this rate` : `until ${day(at!)}`;

/** The day that an instant is the first after, in a time zone: an end of midnight is the end of the day before. */
const lastDay = (end: string, timezone: string) => dayIn(Date.parse(end) - 1000, timezone);

class CampaignPage extends View {
  static override properties = {campaign: {}, editing: {}};
  declare campaign: string;
  /** What is being edited, which the address may say: 'budget' or 'flight'. */
  declare editing: string;
  private node!: Poll<NodeStatus>;
  private object!: Poll<CampaignRow>;
  private forecast!: Poll<Forecast>;
  private groups!: Poll<GroupRow[]>;
  private creatives!: Poll<CreativeRow[]>;
  private experiments!: Poll<ExperimentRow[]>;
  private edits!: Poll<HistoryEdit[]>;
  private today: Poll<Report> | undefined;
  private stopToday: (() => void) | undefined;

  constructor() {
    super();
    this.editing = '';
  }

  protected override stores(): Store<unknown>[] {
    const id = encodeURIComponent(this.campaign);
    this.node = campaignStatus(id);
    this.object = poll('PostgreSQL', `api/campaigns/${id}`, seldom);
    this.forecast = forecastOf(id);
    this.groups = poll('PostgreSQL', `api/ad-groups?campaign=${id}`, seldom);
    this.creatives = poll('PostgreSQL', `api/creatives?campaign=${id}`, seldom);
    this.experiments = poll('PostgreSQL', `api/experiments?campaign=${id}`, seldom);
    this.edits = poll('PostgreSQL', `api/campaigns/${id}/history?all=1&limit=50`, seldom);
    live.watch([Number(this.campaign)]);
    return [
      ...session.seesNode ? [this.node, live] : [],
      ...session.managed ? [this.object, this.forecast, this.groups, this.creatives] : [],
      ...session.may('listExperiments') ? [this.experiments] : [],
      ...session.may('historyCampaign') ? [this.edits] : [],
    ];
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.stopToday?.();
    this.stopToday = this.today = undefined;
    live.watch([]);
  }

  // Its report has the days of its time zone, which is known once it is here.
  protected override willUpdate(): void {
    const {value} = this.object;
    if (value && session.may('report') && !this.today) {
      this.today = report({by: 'hour', from: 'today', campaign: this.campaign, timezone: value.timezone ?? 'UTC'});
      this.stopToday = this.today.follow(() => this.requestUpdate());
    }
  }

  private get onNode(): CampaignStatus | undefined {
    return this.node.value?.campaigns.find(({id}) => String(id) === this.campaign);
  }

  private get currency(): string | null {
    return this.forecast.value?.currency ?? this.node.value?.catalog.currency ?? null;
  }

  private get name(): string {
    return this.object.value?.name || this.onNode?.name || `Campaign ${this.campaign}`;
  }

  // ---- edits ----

  private actions(campaign: CampaignRow): TemplateResult {
    const of = {kind: 'campaign' as const, id: campaign.id, name: this.name};
    const paused = campaign.status === 'paused';
    const runs = campaign.status === 'active' || campaign.status === 'scheduled';
    return html`<div class="actions">
      ${runs && session.may('pauseCampaign') ? html`<button @click=${() => void act('pause', of)}>Pause</button>` : nothing}
      ${(paused || campaign.status === 'draft' || campaign.status === 'completed') && session.may('resumeCampaign') ? html`<button class="primary" @click=${() => void act('resume', of, paused ? 'Resume' : 'Start')}>${paused ? 'Resume' : 'Start'}</button>` : nothing}
      ${session.may('cloneCampaign') ? html`<button @click=${() => void act('clone', of).then(made => made && router.go(address('campaign', made.id)))}>Clone</button>` : nothing}
      ${campaign.status !== 'archived' && session.may('archiveCampaign') ? html`<button @click=${() => void act('archive', of)}>Archive</button>` : nothing}</div>`;
  }

  private done = () => {
    this.editing = '';
  };

  private budgetEdit(campaign: CampaignRow): Edit {
    const onlyAmount = session.value?.role === 'operator';
    const {budget} = campaign;
    return {
      title: 'Budget', save: 'Save', method: 'PATCH', path: `/campaigns/${campaign.id}`, version: this.object.version,
      ...onlyAmount ? {note: 'As an operator you may change the amount, and raise it within a limit.'} : {},
      fields: [
        {path: 'budget.type', label: 'Per', kind: 'choice', value: budget?.type ?? 'daily', disabled: onlyAmount, choices: [['daily', 'day'], ['lifetime', 'whole campaign'], ['none', 'unlimited']]},
        {path: 'budget.amount_cents', label: `Amount${this.currency ? `, ${this.currency}` : ''}`, kind: 'money', value: budget ? (budget.amount_cents / 100).toFixed(2) : ''},
      ],
      body: values => {
        const type = values['budget.type'];
        return type === 'none' ? {budget: null} : {budget: {...onlyAmount ? {} : {type}, amount_cents: centsOf('budget.amount_cents', values['budget.amount_cents'] ?? '')}};
      },
      command: values => commandLine('campaign', 'update', campaign.id, '--budget', values['budget.type'] === 'none' ? 'none' : `${values['budget.amount_cents']}/${values['budget.type'] === 'lifetime' ? 'total' : 'day'}`),
      saved: this.done, cancel: this.done,
    };
  }

  private flightEdit(campaign: CampaignRow): Edit {
    const timezone = campaign.timezone ?? 'UTC';
    return {
      title: 'Flight', save: 'Save', method: 'PATCH', path: `/campaigns/${campaign.id}`, version: this.object.version,
      note: `Whole days of ${timezone}; empty is open.`,
      fields: [
        {path: 'start', label: 'First day', kind: 'date', value: campaign.start ? dayIn(Date.parse(campaign.start), timezone) : ''},
        {path: 'end', label: 'Last day', kind: 'date', value: campaign.end ? lastDay(campaign.end, timezone) : ''},
      ],
      body: values => ({start: values['start'] ? midnight(values['start'], timezone, 0) : null, end: values['end'] ? midnight(values['end'], timezone, 1) : null}),
      command: values => commandLine('campaign', 'update', campaign.id, '--start', values['start'] || 'none', '--end', values['end'] || 'none'),
      saved: this.done, cancel: this.done,
    };
  }

  // ---- pacing ----

  // SPEC: cumulative spend of the day by hour, what even delivery would be, the bound; edits as marks.
  private pacing(): TemplateResult {
    const {status} = this.object.value ?? {};
    if (status === 'draft' || status === 'archived') {
      return html`<p class="notice">${status === 'draft' ? 'It has not been started: there is nothing to pace yet.' : 'It is archived and no longer served.'}</p>`;
    }
    const node = this.onNode;
    const campaign = this.object.value;
    const timezone = campaign?.timezone ?? 'UTC';
    const budget = node?.budget ?? null;
    const lifetime = budget?.type === 'lifetime' || campaign?.budget?.type === 'lifetime';
    const amount = lifetime ? null : budget?.amount ?? (campaign?.budget?.type === 'daily' ? campaign.budget.amount_cents : null);
    const used = budget?.used ?? this.today?.value?.total.spend_cents ?? (session.managed ? null : (this.node.value?.ad_groups ?? []).reduce((sum, group) => sum + group.spend_cents, 0));
    const elapsed = node ? node.elapsed_seconds / node.day_seconds : hourIn(Date.now(), timezone) / 24;
    const ideal = budget?.ideal ?? (amount === null ? null : amount * elapsed);
    // Of a lifetime budget there is a plan for the day, and no bound but the whole.
    const plan = amount ?? (lifetime && ideal && elapsed > 0 ? ideal / elapsed : null);
    const word = node?.budget ? paceOf(node.pace) : null;
    const state = html`${word ? pace(word) : nothing}`;
    const finding = used === null ? 'There are no figures of today yet.'
      : lifetime ? html`${money(used, this.currency)} spent today${ideal ? html`, ${share(used / ideal).replace(/\.\d/, '')} of ideal` : nothing}${budget ? html`; ${money(budget.whole_cents)} of ${money(budget.cents)} in all` : nothing}. ${state}`
      : amount === null ? html`${money(used, this.currency)} spent today; there is no budget to pace.`
        : html`${money(used)} of ${money(amount, this.currency)} spent today${ideal ? html`, ${share(used / ideal).replace(/\.\d/, '')} of ideal` : nothing}. ${state}`;
    const whole = amount === null || used === null ? nothing : html`<p class="dim">${share(used / amount)} of today’s budget; the mark is where even delivery would be.</p>${bar(used / amount, ideal === null ? null : ideal / amount, word ?? '')}`;
    const rows = this.today?.value?.rows;
    if (!rows) {
      return html`<p><b>${finding}</b></p>${whole}${session.managed ? nothing : html`<p class="dim">The hours of the day are in PostgreSQL: there is no chart without it.</p>`}`;
    }
    const now = elapsed * 24;
    const x = [...Array(Math.floor(now) + 1).keys(), ...now % 1 > 0.02 ? [now] : []];
    const spent = byHour(rows, 'spend_cents');
    let sum = 0;
    const line = x.map(hour => {
      if (hour > 0) {
        sum += spent[Math.ceil(hour) - 1] ?? 0;
      }
      return hour === x.at(-1) && used !== null ? Math.max(used, sum) : sum;
    });
    const begin = dayIn(Date.now(), timezone);
    const marks: Mark[] = (this.edits.value ?? []).map(edit => ({...edit, fields: edit.changes.filter(({object}) => object === 'campaign').flatMap(({fields}) => fields)})).filter(entry => entry.fields.length > 0 && dayIn(Date.parse(entry.at), timezone) === begin)
      .map(entry => ({x: hourIn(Date.parse(entry.at), timezone), text: `${entry.actor}: ${entry.fields.map(({field}) => field).join(', ')}`}));
    const all = [...x, 24];
    const labelled = (value: number) => Number.isInteger(value) ? `${String(value).padStart(2, '0')}:00` : `${String(Math.floor(value)).padStart(2, '0')}:${String(Math.round(value % 1 * 60)).padStart(2, '0')}`;
    return html`${chart({
      finding, name: 'Spend of the day by hour', x: all, xName: `Hour, ${timezone}`, xText: labelled, ticks: [0, 6, 12, 18, 24], range: [0, 24], height: 220, marks,
      text: value => money(value, this.currency), yText: value => money(value).replace(/\.00$/, ''),
      lines: [
        {name: 'Spent', values: [...line, null], color: 'main', filled: true},
        ...plan === null ? [] : [{name: 'Even delivery', values: all.map(hour => plan * hour / 24), color: 'aim' as const, dashed: true}],
      ],
      ...amount === null ? {} : {limit: {value: amount, text: `budget ${money(amount, this.currency)}`}},
    })}${whole}`;
  }

  // ---- sections ----

  private terms(campaign: CampaignRow): TemplateResult {
    const timezone = campaign.timezone ?? 'UTC';
    const may = session.may('updateCampaign') && campaign.status !== 'archived';
    const mayFlight = may && session.value?.role !== 'operator';
    const edit = (what: 'budget' | 'flight') => html`<button class="quiet" @click=${() => { this.editing = what; }}>Edit<span class="unseen"> ${what}</span></button>`;
    const {budget} = campaign;
    if (this.editing === 'budget' ? may && (budget || mayFlight) : this.editing === 'flight' && mayFlight) {
      return editForm(this.editing === 'budget' ? this.budgetEdit(campaign) : this.flightEdit(campaign));
    }
    return facts([
      ['Budget', html`${budget ? `${money(budget.amount_cents, this.currency)} ${budget.type === 'daily' ? 'per day' : 'in total'}` : 'unlimited'} ${may && (budget || mayFlight) ? edit('budget') : nothing}`],
      ['Flight', html`${campaign.start ? day(campaign.start) : 'at once'} to ${campaign.end ? day(Date.parse(campaign.end) - 1000) : 'open'}${campaign.end && Date.parse(campaign.end) > Date.now() ? `, ${span((Date.parse(campaign.end) - Date.now()) / 1000)} left` : ''} ${mayFlight ? edit('flight') : nothing}`],
      ['Time zone', timezone],
      ['Advertiser', campaign.advertiser || 'none'],
    ]);
  }

  private outlook(): TemplateResult {
    const {value} = this.forecast;
    if (!value) {
      return waiting(this.forecast);
    }
    const band = spendBand(value);
    return html`<p><b>${value.summary}</b></p>${facts([
      ['Spent', money(value.spent_cents, value.currency)],
      ['Per day', html`${money(value.average_daily_spend, value.currency)} <span class="dim">in the last 7 days</span>`],
      ...value.days_to_end === null ? [] : [['By the end', html`${money(value.projected_total_spend, value.currency)}${band ? html` <span class="dim">likely ${money(band[0])} to ${money(band[1], value.currency)}</span>` : nothing}`] as [string, unknown]],
      ...value.goal_count === null ? [] : [['Goal', `${count(value.goal_done)} of ${count(value.goal_count)}, projected ${count(value.goal_projected)}`] as [string, unknown]],
      ...value.exhaustion_date ? [['Budget lasts', lasts(value)] as [string, unknown]] : [],
    ])}`;
  }

  private contents(): TemplateResult {
    const node = new Map((this.node.value?.ad_groups ?? []).map(group => [group.id, group]));
    const groups = this.groups.value;
    const served = (id: number) => count(node.get(id)?.serves);
    const may = (operation: string) => session.may(operation);
    return html`<section class="section"><div class="section-head"><h2>Ad groups</h2>${session.may('createAdGroup') && this.object.value?.status !== 'archived' ? html`<button class="quiet" @click=${() => void createAdGroup(Number(this.campaign), []).then(made => made && router.go(address('ad-group', made.id)))}>New ad group</button>` : nothing}${source(this.groups)}</div>
      ${groups ? table({
        caption: 'Ad groups of the campaign', rows: groups, identify: row => row.id, empty: 'It has no ad groups yet.',
        columns: [
          {name: 'Ad group', by: row => row.name, cell: row => html`<a href=${address('ad-group', row.id)}>${row.name || `Ad group ${row.id}`}</a><span class="cell-note">${row.id}${row.price ? `, ${row.price.model} ${money(row.price.amount_cents, this.currency)}` : ''}</span>`},
          {name: 'Status', cell: row => statusChip(row.status)},
          {name: 'Pace', cell: row => row.status === 'paused' ? pace('paused') : node.get(row.id) ? pace(paceOf(node.get(row.id)!.pace)) : '–'},
          {name: 'Delivered', by: row => row.delivery?.delivered, cell: row => row.delivery ? html`${count(row.delivery.done)} of ${count(row.delivery.target)} ${row.delivery.unit}${bar(row.delivery.delivered, row.delivery.aim)}` : html`<span class="dim">no limit of its own</span>`},
          ...session.seesNode ? [{name: 'Served today', number: true, wide: true, cell: (row: GroupRow) => served(row.id)}] : [],
          {name: 'Do', doing: true, cell: row => html`${may('whyAdGroup') ? html`<a href=${address('why', row.id)}>Why?</a>` : nothing}
            ${row.status === 'active' && may('pauseAdGroup') ? html`<button class="quiet" @click=${() => void act('pause', {kind: 'ad-group', id: row.id, name: row.name})}>Pause</button>` : nothing}
            ${row.status === 'paused' && may('resumeAdGroup') ? html`<button class="quiet" @click=${() => void act('resume', {kind: 'ad-group', id: row.id, name: row.name})}>Resume</button>` : nothing}`},
        ],
      }) : waiting(this.groups)}</section>
      <section class="section"><div class="section-head"><h2>Creatives</h2><span class="dim">last 7 days</span>${session.may('createCreative') && groups?.length && this.object.value?.status !== 'archived' ? html`<a href=${address('creative', 'new', groups.length === 1 ? {group: String(groups[0]!.id)} : {})}>New creative</a>` : nothing}${source(this.creatives)}</div>
      ${this.creatives.value ? table({
        caption: 'Creatives of the campaign', rows: this.creatives.value, identify: row => row.id, empty: 'It has no creatives yet.',
        columns: [
          {name: 'Creative', by: row => row.name, cell: row => html`<a href=${address('creative', row.id)}>${row.name || `Creative ${row.id}`}</a><span class="cell-note">${row.id}, ${row.type}${row.width ? `, ${row.width}×${row.height}` : ''}</span>`},
          {name: 'Status', cell: row => statusChip(row.status)},
          {name: 'Impressions', number: true, by: row => row.delivery.impressions, cell: row => count(row.delivery.impressions)},
          {name: 'Clicks', number: true, by: row => row.delivery.clicks, cell: row => count(row.delivery.clicks)},
          {name: 'CTR', number: true, by: row => row.delivery.ctr, cell: row => share(row.delivery.ctr ?? ratio(row.delivery.clicks, row.delivery.impressions), 2)},
        ],
      }) : waiting(this.creatives)}</section>
      ${this.experiments.value?.length ? html`<section class="section"><div class="section-head"><h2>Experiments</h2>${source(this.experiments)}</div>${table({
        caption: 'Experiments of the campaign', rows: this.experiments.value, identify: row => row.id,
        columns: [
          {name: 'Experiment', cell: row => html`<a href=${address('experiments', row.id)}>${row.name || `Experiment ${row.id}`}</a>`},
          {name: 'Status', cell: row => statusChip(row.status)},
          {name: 'Trials', number: true, cell: row => count(row.delivery.trials)},
        ],
      })}</section>` : nothing}`;
  }

  private nodeGroups(): TemplateResult {
    return html`<section class="section"><div class="section-head"><h2>Ad groups</h2>${source(this.node)}</div>${table({
      caption: 'Ad groups of the campaign', rows: this.node.value!.ad_groups, identify: row => row.id, empty: 'It has no ad groups.',
      columns: [
        {name: 'Ad group', cell: row => html`<a href=${address('why', row.id)}>${row.id}</a>`},
        {name: 'Pace', cell: row => pace(paceOf(row.pace))},
        {name: 'Served', number: true, by: row => row.serves, cell: row => count(row.serves)},
        {name: 'Impressions', number: true, by: row => row.impressions, cell: row => count(row.impressions)},
        {name: 'Clicks', number: true, by: row => row.clicks, cell: row => count(row.clicks)},
        {name: 'Spent', number: true, by: row => row.spend_cents, cell: row => money(row.spend_cents, this.currency)},
      ],
    })}</section>`;
  }

  private now(): TemplateResult | typeof nothing {
    const figures = live.campaigns.get(Number(this.campaign));
    return figures && session.seesNode ? html`<p class="tiles-note"><span>On this node today: ${count(figures.serves)} served, ${count(figures.impressions)} impressions, ${count(figures.viewables)} viewable, ${plural(figures.clicks, 'click')}, ${money(figures.spend_cents, this.currency)}.</span>${source(live)}</p>` : nothing;
  }

  protected override render(): TemplateResult {
    const campaign = this.object.value;
    const main: Store<unknown> = session.managed ? this.object : this.node;
    if (main.value === undefined) {
      return html`<div class="head"><h1>Campaign ${this.campaign}</h1></div>${waiting(main)}`;
    }
    // One without a budget is known by its ad groups.
    if (!campaign && !this.onNode && !this.node.value?.ad_groups.length) {
      return html`<div class="head"><h1>Campaign ${this.campaign}</h1></div><p class="notice">The node has no such campaign: it may have ended, or be a draft.</p>`;
    }
    const why = address('why', `campaign-${this.campaign}`);
    return html`<div class="head"><h1>${this.name}</h1>${campaign ? statusChip(campaign.status) : nothing}${this.onNode?.stopped ? html`<span class="chip stopped">stopped on this node</span>` : nothing}
        ${(session.may('whyCampaign') && campaign?.status !== 'archived') || !session.managed ? html`<a href=${why}>Why does it not deliver more?</a>` : nothing}${campaign ? this.actions(campaign) : nothing}</div>
      <div class="columns"><section class="section"><div class="section-head"><h2>Pacing</h2>${source(session.seesNode ? this.node : this.today ?? this.forecast)}</div>${this.pacing()}${this.now()}</section>
        ${campaign ? html`<div><section class="section"><div class="section-head"><h2>Terms</h2>${source(this.object)}</div>${this.terms(campaign)}</section>
          <section class="section"><div class="section-head"><h2>Forecast</h2>${source(this.forecast)}</div>${this.outlook()}</section></div>` : html`<section class="section"><div class="section-head"><h2>Terms</h2>${source(this.node)}</div>${facts([
            ['Budget', this.onNode?.budget ? `${money(this.onNode.budget.cents, this.currency)} ${this.onNode.budget.type === 'daily' ? 'per day' : 'in total'}` : 'unlimited'],
            ['Local day', this.onNode?.day ?? this.node.value?.ad_groups[0]?.day ?? ''], ...this.onNode ? [['Pace', pace(paceOf(this.onNode.pace))] as [string, unknown]] : []])}</section>`}</div>
      ${campaign ? this.contents() : this.nodeGroups()}
      ${this.edits.value ? html`<section class="section"><div class="section-head"><h2>History</h2>${source(this.edits)}</div>${this.edits.value.length ? edits(this.edits.value) : html`<p class="notice">Nobody has changed it.</p>`}</section>` : nothing}`;
  }
}

define('page-campaign', CampaignPage);

/** The first instant of a day in a time zone, with the offset of that day; `after` days later. */
export const midnight = (of: string, timezone: string, after: number): string => {
  const noon = Date.parse(`${of}T00:00:00Z`);
  if (Number.isNaN(noon)) {
    throw new WrongInput([{object: '', path: '', message: 'must be a day'}]);
  }
  const wall = noon + after * 86_400_000;
  // The zone's clock at a guess tells how far the guess is off; twice, for days on which it changes.
  let at = wall;
  for (let i = 0; i < 2; i++) {
    const parts = Object.fromEntries(new Intl.DateTimeFormat('en-CA', {timeZone: timezone, hourCycle: 'h23', year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit'}).formatToParts(at).map(({type, value}) => [type, value]));
    at -= Date.parse(`${parts['year']}-${parts['month']}-${parts['day']}T${parts['hour']}:${parts['minute']}:${parts['second']}Z`) - wall;
  }
  return new Date(at).toISOString().replace('.000', '');
};
