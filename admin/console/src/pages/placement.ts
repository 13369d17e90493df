// Placements: fill, why there is no ad, who competes, and what goes into a page.
import {count, money, plural, ratio, share} from '../core/format.ts';
import {live} from '../core/live.ts';
import {poll, type Poll} from '../core/poll.ts';
import {report, byHour, hourNow, todayReport, type Report} from '../core/report.ts';
import {address} from '../core/router.ts';
import {campaignName, campaignRows} from '../core/names.ts';
import {session} from '../core/session.ts';
import {nodeStatus} from '../core/status.ts';
import type {Store} from '../core/store.ts';
import {act} from '../ui/actions.ts';
import {chart} from '../ui/chart.ts';
import {command, commandLine, copyable} from '../ui/command.ts';
import {statusChip} from '../ui/pace.ts';
import {source, waiting} from '../ui/source.ts';
import {facts, table} from '../ui/table.ts';
import {define, html, nothing, View, type TemplateResult} from '../ui/view.ts';

interface PlacementRow {
  id: string;
  name?: string | null;
  status?: string;
  width?: number | null;
  height?: number | null;
  types?: string[] | null;
  select?: string;
  floor_cents?: number | null;
  viewable?: {share: number | null; seconds: number | null} | null;
  delivery: {requests: number; unfilled: number; fill_rate: number | null};
}

interface Competitor {
  id: number;
  campaign: number;
  name: string;
  status: string;
  priority: string;
  weight: number;
  price: {model: string; amount_cents: number} | null;
}

const every = 15_000;
const tiers = ['sponsorship', 'standard', 'remnant', 'house'];
const noAd: Record<string, string> = {
  targeting: 'no ad group was open and targeted at the request', floor: 'all prices were below the floor', frequency: 'the visitor has seen all of them often enough', page: 'all of them were on the page already',
  exclusive: 'competitors were on the page', together: 'a set could not be filled as a whole', pacing: 'held back, to spread the day’s limits', cap: 'budgets, caps and goals were reached', rate_limit: 'over a silent rate limit',
};

const snippet = ({id}: {id: string}) => `<link rel="stylesheet" href="/spot/slots.css">\n<script async src="/spot/tag.js"></script>\n\n<page-spot placement="${id}"></page-spot>`;

const embed = (id: string): TemplateResult => html`<section class="section"><div class="section-head"><h2>In a page</h2></div>
  <p>With the <b>tag</b>: once in the head, and the element where the ad goes.</p>${copyable(snippet({id}), 'the tag')}
  <p>With <b>insertion</b>: the same element; nginx fills it while it sends the page.</p>${copyable(`location / { ads_inject on; }\n\n<page-spot placement="${id}"></page-spot>`, 'insertion')}
  <p class="dim">The addresses are those of your ads_tag, ads_slots_css and ads_base.</p></section>`;

const unfilledTable = (unfilled: Record<string, number>): TemplateResult => {
  const all = Object.values(unfilled).reduce((sum, n) => sum + n, 0);
  return table({
    caption: 'Why placements got no ad', rows: Object.entries(unfilled).filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]), identify: ([name]) => name, empty: 'Every placement that was asked for got an ad.',
    columns: [
      {name: 'No ad because of', cell: ([name]) => html`${name.replaceAll('_', ' ')}<span class="cell-note">${noAd[name] ?? ''}</span>`},
      {name: 'Placements', number: true, cell: ([, n]) => count(n)},
      {name: 'Of all without', number: true, cell: ([, n]) => share(ratio(n, all))},
    ],
  });
};

/** Of the ad's area, and for how long; large ads need less. */
const viewableText = ({viewable, width, height}: PlacementRow): string => {
  const part = viewable?.share ?? (width && height ? width * height >= 242_500 ? 0.3 : 0.5 : null);
  return `${part === null ? 'half of the ad (30 % of a large one)' : `${share(part, 1).replace('.0 ', ' ')} of the ad`} in view for ${viewable?.seconds ?? 1} s`;
};

class PlacementPage extends View {
  static override properties = {placement: {}};
  declare placement: string;
  private readonly node = nodeStatus();
  private readonly campaigns = campaignRows();
  private list!: Poll<PlacementRow[]>;
  private object!: Poll<PlacementRow>;
  private rivals!: Poll<Competitor[]>;
  private today!: Poll<Report>;
  private by!: Poll<Report>;
  private outcomes!: Poll<{outcome: string; requests: number}[]>;

  protected override stores(): Store<unknown>[] {
    const id = this.placement;
    this.list = poll('PostgreSQL', 'api/placements', every);
    this.object = poll('PostgreSQL', `api/placements/${encodeURIComponent(id)}`, every);
    this.rivals = poll('PostgreSQL', `api/ad-groups?placement=${encodeURIComponent(id)}&status=active`, every);
    this.today = todayReport({placement: id});
    this.outcomes = poll('PostgreSQL', `api/placements/${encodeURIComponent(id)}/outcomes`, every);
    this.by = report({by: 'campaign', from: 'today', placement: id});
    const pg = !session.managed ? [] : id ? [this.object, this.rivals, this.today, this.by, this.outcomes] : [this.list];
    return [...session.managed ? [this.campaigns] : [], ...session.seesNode ? [live, ...session.managed ? [] : [this.node]] : [], ...pg];
  }

  private get currency(): string | null {
    return this.today.value?.currency ?? null;
  }

  // ---- all of them ----

  private all(): TemplateResult {
    const rows = this.list.value;
    const curves = this.node.value?.curves.filter(curve => curve.placement !== null);
    return html`<section class="section"><div class="section-head"><h2>Placements</h2>${session.managed ? html`<span class="dim">last 24 hours</span>${source(this.list)}` : source(this.node)}</div>
      ${session.managed ? rows ? table({
        caption: 'Placements', rows, identify: row => row.id, empty: 'There are no placements yet: nginx-ads placement create makes one.',
        columns: [
          {name: 'Placement', by: row => row.id, cell: row => html`<a href=${address('placement', row.id)}>${row.name || row.id}</a><span class="cell-note">${row.id}</span>`},
          {name: 'Status', cell: row => statusChip(row.status ?? 'active')},
          {name: 'Size', wide: true, cell: row => row.width ? `${row.width}×${row.height}` : 'any'},
          {name: 'Requests', number: true, by: row => row.delivery.requests, cell: row => count(row.delivery.requests)},
          {name: 'Without an ad', number: true, by: row => row.delivery.unfilled, cell: row => count(row.delivery.unfilled)},
          {name: 'Fill', number: true, by: row => row.delivery.fill_rate, cell: row => share(row.delivery.fill_rate)},
        ],
      }) : waiting(this.list)
        : curves ? table({
          caption: 'Placements of this node', rows: curves, identify: row => row.placement, empty: 'No placement was asked for yet.',
          columns: [
            {name: 'Placement', by: row => row.placement, cell: row => html`<a href=${address('placement', row.placement!)}>${row.placement}</a>`},
            {name: 'Requests', number: true, by: row => row.requests, cell: row => count(row.requests)},
            {name: 'Its curve of the week', cell: row => row.warm ? 'learned' : 'learning'},
          ],
        }) : waiting(this.node)}</section>
      ${session.seesNode ? html`<section class="section"><div class="section-head"><h2>Without an ad</h2><span class="dim">all placements of this node, since its state was created</span>${source(live)}</div>${live.value ? unfilledTable(live.value.unfilled) : waiting(live)}</section>` : nothing}`;
  }

  // ---- one ----

  private fill(): TemplateResult {
    const {value} = this.today;
    if (!value) {
      return waiting(this.today);
    }
    const {requests, unfilled, fill_rate: fill} = value.total;
    const hour = hourNow();
    const of = (figure: 'requests' | 'unfilled') => byHour(value.rows, figure).map((n, i) => i <= hour ? n ?? 0 : null);
    return chart({
      finding: requests ? `${share(fill)} of ${plural(requests, 'request')} of today got an ad; ${count(unfilled)} did not.` : 'It was not asked for today.',
      name: 'Requests by hour', x: [...Array(24).keys()], range: [0, 23], ticks: [0, 6, 12, 18], xName: 'Hour', xText: x => `${String(x).padStart(2, '0')}:00`, text: count,
      lines: [{name: 'Requests', values: of('requests'), color: 'main', filled: true}, {name: 'Without an ad', values: of('unfilled'), color: 'bad', dashed: true}],
    });
  }

  private competition(): TemplateResult {
    const running = new Set((this.campaigns.value ?? []).filter(({status}) => status === 'active').map(({id}) => id));
    const rows = this.rivals.value?.filter(({campaign}) => running.has(campaign));
    if (!rows) {
      return waiting(this.rivals);
    }
    const impressions = new Map((this.by.value?.rows ?? []).map(row => [Number(row.key), row.impressions]));
    const byTier = new Map<string, number>();
    for (const row of rows) {
      byTier.set(row.priority, (byTier.get(row.priority) ?? 0) + row.weight);
    }
    return table({
      caption: 'Ad groups that may be served here', rows: rows.toSorted((a, b) => tiers.indexOf(a.priority) - tiers.indexOf(b.priority) || b.weight - a.weight), identify: row => row.id, empty: 'No active ad group is aimed at it: it stays empty.',
      columns: [
        {name: 'Ad group', by: row => row.name, cell: row => html`<a href=${address('why', row.id)}>${row.name || `Ad group ${row.id}`}</a><span class="cell-note"><a href=${address('campaign', row.campaign)}>${campaignName(row.campaign)}</a></span>`},
        {name: 'Tier', by: row => tiers.indexOf(row.priority), cell: row => row.priority},
        {name: 'Weight', number: true, by: row => row.weight, cell: row => html`${row.weight}<span class="cell-note">${share(ratio(row.weight, byTier.get(row.priority) ?? 0))} of its tier</span>`},
        {name: 'Price', wide: true, cell: row => row.price ? `${row.price.model} ${money(row.price.amount_cents, this.currency)}` : 'free'},
        {name: 'Impressions today', number: true, by: row => impressions.get(row.campaign) ?? 0, cell: row => count(impressions.get(row.campaign) ?? 0), title: 'of its campaign, here'},
      ],
    });
  }

  private one(): TemplateResult {
    const row = this.object.value;
    if (!session.managed) {
      const curve = this.node.value?.curves.find(({placement}) => placement === this.placement);
      return html`<div class="columns"><section class="section"><div class="section-head"><h2>Traffic</h2>${source(this.node)}</div>${curve ? chart({
        finding: `Asked for ${plural(curve.requests, 'time')} since its curve was begun.`, name: 'Share of the day by hour, UTC', x: [...Array(24).keys()], range: [0, 23], ticks: [0, 6, 12, 18], xName: 'Hour, UTC', xText: x => `${String(x).padStart(2, '0')}:00`, text: count,
        lines: [{name: 'Learned traffic', values: curve.hours, color: 'main', filled: true}],
      }) : html`<p class="notice">It was not asked for yet.</p>`}</section>${embed(this.placement)}</div>`;
    }
    if (!row) {
      return waiting(this.object);
    }
    const of = {kind: 'placement' as const, id: row.id, name: row.name ?? ''};
    const active = (row.status ?? 'active') === 'active';
    return html`<div class="columns"><section class="section"><div class="section-head"><h2>Fill</h2>${source(this.today)}</div>${this.fill()}</section>
        <section class="section"><div class="section-head"><h2>Terms</h2>${source(this.object)}</div>${facts([
          ['Id', row.id], ['Status', html`${statusChip(row.status ?? 'active')}
            ${session.may(active ? 'pausePlacement' : 'resumePlacement') ? html`<button class="quiet" @click=${() => void act(active ? 'pause' : 'resume', of)}>${active ? 'Pause' : 'Resume'}</button>` : nothing}`],
          ['Size', row.width ? `${row.width}×${row.height}` : 'any'], ['Types', row.types?.join(', ') || 'all'],
          ['Chooses by', row.select ?? 'weight'], ['Floor', row.floor_cents ? `${money(row.floor_cents, this.currency)} eCPM` : 'none'],
          ['Viewable means', viewableText(row)],
          ...this.today.value ? [['Viewable today', html`${share(this.today.value.total.viewable_rate)} <span class="dim">of ${plural(this.today.value.total.impressions, 'impression')}</span>`] as [string, unknown]] : [],
        ])}${command(commandLine('placement', 'show', row.id))}</section></div>
      <section class="section"><div class="section-head"><h2>Without an ad</h2><span class="dim">last 24 hours</span>${source(this.outcomes)}</div>${this.outcomes.value ? unfilledTable(Object.fromEntries(this.outcomes.value.filter(({outcome}) => outcome).map(({outcome, requests}) => [outcome, requests]))) : waiting(this.outcomes)}</section>
      <section class="section"><div class="section-head"><h2>Who competes</h2>${source(this.rivals)}</div>${this.competition()}</section>${embed(row.id)}`;
  }

  protected override render(): TemplateResult {
    return this.placement
      ? html`<div class="head"><h1>${this.object.value?.name || this.placement}</h1><a href="#/placement">All placements</a></div>${this.one()}`
      : html`<div class="head"><h1>Placements</h1></div>${this.all()}`;
  }
}

define('page-placement', PlacementPage);
