// All campaigns, also those that do not run, and a new one.
import {day, money} from '../core/format.ts';
import {poll, type Poll} from '../core/poll.ts';
import {withQuery} from '../core/http.ts';
import {address, router} from '../core/router.ts';
import {session} from '../core/session.ts';
import type {CampaignRow} from '../core/names.ts';
import {nodeStatus} from '../core/status.ts';
import type {Store} from '../core/store.ts';
import {commandLine} from '../ui/command.ts';
import {ask, centsOf} from '../ui/edit.ts';
import {statusChip} from '../ui/pace.ts';
import {source, waiting} from '../ui/source.ts';
import {table} from '../ui/table.ts';
import {define, html, nothing, View, type TemplateResult} from '../ui/view.ts';
import {midnight} from './campaign.ts';
import {zone} from '../core/format.ts';

const statuses: [value: string, text: string][] = [['', 'all'], ['active', 'active'], ['paused', 'paused'], ['draft', 'draft'], ['scheduled', 'scheduled'], ['completed', 'completed'], ['archived', 'archived']];

class CampaignsPage extends View {
  static override properties = {status: {}, search: {}};
  declare status: string;
  declare search: string;
  private list!: Poll<CampaignRow[]>;
  /** For its currency. */
  private readonly node = nodeStatus();
  private readonly advertisers = poll<{name: string}[]>('PostgreSQL', 'api/advertisers', 60_000);

  protected override stores(): Store<unknown>[] {
    this.list = poll('PostgreSQL', withQuery('api/campaigns', {status: this.status, search: this.search}), 15_000);
    return [this.list, ...session.seesNode ? [this.node] : [], ...session.may('createCampaign') ? [this.advertisers] : []];
  }

  private async create(): Promise<void> {
    const made = await ask({
      title: 'New campaign', save: 'Create', method: 'POST', path: '/campaigns',
      note: 'It begins as a draft: add ad groups and creatives, then start it.',
      fields: [
        {path: 'name', label: 'Name', value: '', required: true},
        {path: 'advertiser', label: 'Advertiser', value: '', known: (this.advertisers.value ?? []).map(({name}) => name)},
        {path: 'timezone', label: 'Time zone', value: zone, hint: 'its days begin at midnight there'},
        {path: 'budget.type', label: 'Budget per', kind: 'choice', value: 'daily', choices: [['daily', 'day'], ['lifetime', 'whole campaign'], ['none', 'unlimited']]},
        {path: 'budget.amount_cents', label: 'Amount', kind: 'money', value: ''},
        {path: 'start', label: 'First day', kind: 'date', value: '', hint: 'empty: at once'},
        {path: 'end', label: 'Last day', kind: 'date', value: '', hint: 'empty: open'},
      ],
      body: values => ({
        name: values['name'], ...values['advertiser'] ? {advertiser: values['advertiser']} : {}, timezone: values['timezone'],
        ...values['budget.type'] === 'none' ? {} : {budget: {type: values['budget.type'], amount_cents: centsOf('budget.amount_cents', values['budget.amount_cents'] ?? '')}},
        ...values['start'] ? {start: midnight(values['start'], values['timezone'] || 'UTC', 0)} : {},
        ...values['end'] ? {end: midnight(values['end'], values['timezone'] || 'UTC', 1)} : {},
      }),
      command: values => commandLine('campaign', 'create', '--name', values['name'] || 'NAME', ...values['advertiser'] ? ['--advertiser', values['advertiser']] : [], '--timezone', values['timezone'] ?? 'UTC',
        ...values['budget.type'] === 'none' ? [] : ['--budget', `${values['budget.amount_cents'] || '50.00'}/${values['budget.type'] === 'lifetime' ? 'total' : 'day'}`],
        ...values['start'] ? ['--start', values['start']] : [], ...values['end'] ? ['--end', values['end']] : []),
    });
    if (made) {
      router.go(address('campaign', made.id));
    }
  }

  private filter(name: string, value: string): void {
    const query: Record<string, string> = {status: this.status, search: this.search, [name]: value};
    router.go(address('campaigns', '', query));
  }

  protected override render(): TemplateResult {
    const rows = this.list.value;
    const currency = this.node.value?.catalog.currency;
    const priced = (name: string) => currency ? `${name}, ${currency}` : name;
    return html`<div class="head"><h1>Campaigns</h1><div class="actions">${session.may('createCampaign') ? html`<button class="primary" @click=${() => void this.create()}>New campaign</button>` : nothing}</div></div>
      <section class="section"><form class="filters" @submit=${(event: SubmitEvent) => { event.preventDefault(); this.filter('search', (this.querySelector('#search') as HTMLInputElement).value); }}>
        <div class="field"><label for="search">Search</label><input id="search" type="search" .value=${this.search} placeholder="name, id, advertiser"></div>
        <div class="field"><label for="status">Status</label><select id="status" @change=${(event: Event) => this.filter('status', (event.target as HTMLSelectElement).value)}>${statuses.map(([value, text]) => html`<option value=${value} ?selected=${value === this.status}>${text}</option>`)}</select></div>
        <button type="submit">Search</button></form>
      ${rows ? table({
        caption: 'Campaigns', rows, identify: row => row.id, empty: 'No campaign matches.', limit: 100,
        columns: [
          {name: 'Campaign', by: row => row.name, cell: row => html`<a href=${address('campaign', row.id)}>${row.name || `Campaign ${row.id}`}</a><span class="cell-note">${row.id}</span>`},
          {name: 'Advertiser', by: row => row.advertiser, wide: true, cell: row => row.advertiser || '–'},
          {name: 'Status', by: row => row.status, cell: row => statusChip(row.status)},
          {name: priced('Budget'), number: true, by: row => row.budget?.amount_cents, cell: row => row.budget ? `${money(row.budget.amount_cents)}/${row.budget.type === 'daily' ? 'day' : 'total'}` : '–'},
          {name: priced('Spent'), number: true, wide: true, by: row => row.delivery?.spent_cents, cell: row => money(row.delivery.spent_cents), title: 'of a budget for the whole campaign: in all; else today'},
          {name: 'Ends', by: row => row.end, wide: true, cell: row => row.end ? day(Date.parse(row.end) - 1000) : 'open'},
        ],
      }) : waiting(this.list)}<p class="tiles-note">${source(this.list)}</p></section>`;
  }
}

define('page-campaigns', CampaignsPage);
