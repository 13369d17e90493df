// The campaigns that are meant to deliver, the one with the most money at risk first.
import {count, money, share, span} from '../core/format.ts';
import {campaignRows} from '../core/names.ts';
import {forecastOf, spendBand, type Forecast} from '../core/report.ts';
import {address} from '../core/router.ts';
import {session} from '../core/session.ts';
import {fullStatus, type CampaignStatus, type GroupStatus} from '../core/status.ts';
import type {Poll} from '../core/poll.ts';
import type {Store} from '../core/store.ts';
import {bar} from '../ui/chart.ts';
import {pace, paceOf, paceOfShares, type PaceWord} from '../ui/pace.ts';
import {source, waiting} from '../ui/source.ts';
import {table, type Column} from '../ui/table.ts';
import {define, html, nothing, View, type TemplateResult} from '../ui/view.ts';

interface Row {
  id: number;
  name: string;
  advertiser: string;
  word: PaceWord;
  /** Shares of what is to be delivered: so far, and what even delivery would be. */
  delivered: number | null;
  aim: number | null;
  progress: string;
  /** Cents that even delivery would have brought by now, and this has not. */
  risk: number;
  end: number | null;
}

const mostForecasts = 12;
const order: Record<PaceWord, number> = {stopped: 0, idle: 1, under: 2, over: 3, on: 4, none: 5, 'used up': 6, paused: 7, ended: 8};

const tightest = (groups: GroupStatus[]): {group: GroupStatus; limit: GroupStatus['limits'][number]} | undefined => {
  // One that is paused has no plan to be behind.
  const group = groups.filter(({limits}) => limits.some(({ideal}) => ideal > 0)).sort((a, b) => (a.pace.utilization ?? 1) - (b.pace.utilization ?? 1))[0] ?? groups.find(({limits}) => limits.length);
  const limit = group?.limits.toSorted((a, b) => a.used / (a.ideal || 1) - b.used / (b.ideal || 1))[0];
  return group && limit ? {group, limit} : undefined;
};
const limitText = ({group, limit}: {group: GroupStatus; limit: GroupStatus['limits'][number]}) => `${count(limit.used)} of ${count(limit.amount)} ${limit.of} today, ad group ${group.id}`;

class CampaignList extends View {
  private readonly node = fullStatus();
  private readonly rows = campaignRows();
  private readonly forecasts = new Map<number, {poll: Poll<Forecast>; stop: () => void}>();

  protected override stores(): Store<unknown>[] {
    return [...session.seesNode ? [this.node] : [], ...session.managed ? [this.rows] : []];
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.forecasts.forEach(({stop}) => stop());
    this.forecasts.clear();
  }

  private currency(): string | null {
    return this.node.value?.catalog.currency ?? null;
  }

  private onNode(id: number): CampaignStatus | undefined {
    return this.node.value?.campaigns.find(campaign => campaign.id === id);
  }

  private managed(): Row[] {
    return (this.rows.value ?? []).filter(campaign => campaign.status === 'active').map(campaign => {
      const node = this.onNode(campaign.id);
      const d = campaign.delivery;
      const budget = d.budget_cents;
      const groups = this.node.value?.ad_groups.filter(group => group.campaign === campaign.id) ?? [];
      // Without a budget: word, bar and figures of the ad group that is furthest behind its own limit, as the node plans it.
      const behind = budget === null ? tightest(groups) : undefined;
      const word = node?.stopped ? 'stopped' : d.active_ad_groups === 0 ? 'idle' : node?.budget ? paceOf(node.pace) : behind ? paceOf(behind.group.pace) : paceOfShares(d.delivered, d.aim);
      return {
        id: campaign.id, name: campaign.name || `Campaign ${campaign.id}`, advertiser: campaign.advertiser ?? '', word,
        delivered: behind ? behind.limit.used / behind.limit.amount : d.delivered, aim: behind ? behind.limit.ideal / behind.limit.amount : d.aim,
        progress: behind ? limitText(behind) : budget === null ? `${money(d.spent_cents, this.currency())} today` : `${money(d.spent_cents)} of ${money(budget, this.currency())}${d.of === 'day' ? ' today' : ''}`,
        risk: budget === null || d.aim === null ? 0 : Math.max(0, (d.aim - (d.delivered ?? 0)) * budget),
        end: campaign.end ? Date.parse(campaign.end) : null,
      };
    });
  }

  // Of a node: by its budget, or the tightest limit of its ad groups.
  private embedded(): Row[] {
    const {campaigns = [], ad_groups: all = []} = this.node.value ?? {};
    // Those without a budget are known by their ad groups, if these are served or should be.
    const served = all.filter(({serves, limits, refused}) => serves > 0 || (limits.length > 0 && !refused['status']));
    const ids = new Set([...campaigns.map(({id}) => id), ...served.map(({campaign}) => campaign)]);
    return [...ids].map(id => campaigns.find(campaign => campaign.id === id) ?? {id, name: '', stopped: null, budget: null, pace: null}).map(campaign => {
      const groups = all.filter(group => group.campaign === campaign.id);
      const spent = groups.reduce((sum, group) => sum + group.spend_cents, 0);
      const {budget} = campaign;
      const limited = tightest(groups);
      const limit = budget ?? limited?.limit;
      const whole = budget?.type === 'lifetime';
      const worst = budget ? campaign.pace : limited?.group.pace;
      return {
        id: campaign.id, name: campaign.name || `Campaign ${campaign.id}`, advertiser: '', end: null,
        word: campaign.stopped || groups.some(({stopped}) => stopped) ? 'stopped' : worst ? paceOf(worst) : 'none',
        delivered: whole ? budget!.whole_cents / budget!.cents : limit?.amount ? limit.used / limit.amount : null, aim: !whole && limit?.amount ? limit.ideal / limit.amount : null,
        progress: budget ? whole ? `${money(budget.whole_cents)} of ${money(budget.cents, this.currency())}` : `${money(budget.used)} of ${money(budget.amount, this.currency())} today`
          : limited ? limitText(limited) : `${money(spent, this.currency())} today`,
        risk: budget ? Math.max(0, budget.ideal - budget.used) : 0,
      };
    });
  }

  // Of those that stand first.
  private follow(rows: Row[]): void {
    if (!session.may('forecastCampaign')) {
      return;
    }
    const wanted = new Set(rows.slice(0, mostForecasts).map(row => row.id));
    for (const [id, {stop}] of this.forecasts) {
      if (!wanted.has(id)) {
        stop();
        this.forecasts.delete(id);
      }
    }
    for (const id of wanted) {
      if (!this.forecasts.has(id)) {
        const one = forecastOf(id);
        this.forecasts.set(id, {poll: one, stop: one.follow(() => this.requestUpdate())});
      }
    }
  }

  private atEnd({id}: Row): TemplateResult | string {
    const forecast = this.forecasts.get(id)?.poll.value;
    if (!forecast) {
      return '';
    }
    const band = spendBand(forecast);
    const short = (cents: number) => money(cents).replace(/\.00$/, '');
    return html`<span title=${forecast.summary}>${forecast.delivery === null ? money(forecast.projected_total_spend, forecast.currency) : share(forecast.delivery)}${band ? html`<span class="cell-note">${short(band[0])}–${short(band[1])} likely</span>` : nothing}</span>`;
  }

  private columns(): Column<Row>[] {
    const managed = session.managed;
    const ends: Column<Row> = {name: 'Ends', by: row => row.end, wide: true, cell: row => row.end === null ? 'open' : row.end < Date.now() ? 'ended' : `in ${span((row.end - Date.now()) / 1000)}`};
    return [
      {name: 'Campaign', by: row => row.name, cell: row => html`<a href="#/campaign/${row.id}">${row.name}</a>${row.advertiser ? html`<span class="cell-note">${row.advertiser}</span>` : nothing}`},
      {name: 'Pace', by: row => order[row.word], cell: row => html`${pace(row.word)}${['under', 'stopped', 'used up', 'idle'].includes(row.word) && (session.may('whyCampaign') || !managed) ? html` <a href=${address('why', `campaign-${row.id}`)} aria-label="Why is ${row.name} ${row.word === 'under' ? 'under pace' : row.word === 'idle' ? 'not served' : row.word}?">Why?</a>` : nothing}`},
      {name: 'Delivered', by: row => row.delivered, cell: row => html`${row.progress}${row.delivered === null ? nothing : bar(row.delivered, row.aim, row.word)}`},
      {name: 'At risk', number: true, wide: true, title: 'what even delivery would have brought by now, and this campaign has not', by: row => row.risk, cell: row => row.risk > 0 ? money(row.risk, this.currency()) : '–'},
      ...managed ? [{name: 'At the end', number: true, title: 'if the last 7 days continue', cell: (row: Row) => this.atEnd(row)} satisfies Column<Row>, ends] : [],
    ];
  }

  protected override render(): TemplateResult {
    const from: Store<unknown> = session.managed ? this.rows : this.node;
    if (from.value === undefined) {
      return waiting(from);
    }
    const rows = (session.managed ? this.managed() : this.embedded()).sort((a, b) => b.risk - a.risk || order[a.word] - order[b.word] || a.id - b.id);
    this.follow(rows);
    return html`${table({caption: 'Campaigns that should be delivering', rows, identify: row => row.id, columns: this.columns(), empty: 'No campaign is active.', limit: 30})}
      <p class="tiles-note"><span>The mark in the bar is what even delivery would have come to by now.</span>${source(from)}</p>`;
  }
}

define('campaign-list', CampaignList);
