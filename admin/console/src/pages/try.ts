// A request as a form: what would be served, and why nothing else. It counts nothing.
import {count, plural, share, time} from '../core/format.ts';
import {api, Refused} from '../core/http.ts';
import {campaignName, namesStore} from '../core/names.ts';
import {poll} from '../core/poll.ts';
import {address, router} from '../core/router.ts';
import type {Store} from '../core/store.ts';
import {command, commandLine} from '../ui/command.ts';
import {table} from '../ui/table.ts';
import {define, html, nothing, View, type TemplateResult} from '../ui/view.ts';
import {reasons as refusals} from './why.ts';

interface Decision {
  at: string;
  device: string;
  repeat: number;
  placements: {
    placement: string;
    unfilled: number;
    served: {campaign: number; ad_group: number; creative: number; experiment: number | null; count: number; share: number}[];
    not_served: {campaign: number; ad_group: number; reason: string}[];
  }[];
}

const fields: [name: string, label: string, hint: string][] = [
  ['url', 'Page', 'https://example.com/news/'], ['country', 'Geo', 'US-CA'], ['language', 'Language', 'en'], ['keys', 'Keys', 'section=sports'],
];

const bodyOf = (query: URLSearchParams): Record<string, unknown> => {
  const get = (name: string) => query.get(name) ?? '';
  const keys = get('keys').split(/[\s,]+/).filter(Boolean).map(pair => pair.split('=', 2));
  return {
    placements: get('placements').split(/[\s,]+/).filter(Boolean),
    ...get('device') ? {device: get('device')} : {}, ...get('url') ? {url: get('url')} : {}, ...get('country') ? {geo: get('country')} : {}, ...get('language') ? {language: get('language')} : {},
    ...keys.length ? {keys: Object.fromEntries(keys)} : {},
  };
};

class TryPage extends View {
  static override properties = {query: {attribute: false}, decision: {state: true}, problem: {state: true}, busy: {state: true}};
  declare query: URLSearchParams;
  declare private decision: Decision | undefined;
  declare private problem: string;
  declare private busy: boolean;
  private readonly placements = poll<{id: string; name?: string}[]>('PostgreSQL', 'api/placements', 60_000);
  private asked = 0;

  constructor() {
    super();
    this.problem = '';
    this.busy = false;
  }

  protected override stores(): Store<unknown>[] {
    return [this.placements, namesStore()];
  }

  protected override firstUpdated(): void {
    if (this.query.get('placements')) {
      void this.decide();
    }
  }

  private async decide(): Promise<void> {
    const asked = ++this.asked;
    this.busy = true;
    try {
      const {value} = await api<Decision>('POST', '/decide', {body: bodyOf(this.query), query: {repeat: this.query.get('repeat') || 1000}});
      if (asked === this.asked) {
        this.decision = value;
        this.problem = '';
      }
    } catch (error) {
      this.decision = undefined;
      this.problem = error instanceof Refused ? [error.message, ...error.faults.map(({path, message}) => `${path}: ${message}`)].join(' ') : String(error);
    } finally {
      this.busy = false;
    }
  }

  private submit(event: Event): void {
    event.preventDefault();
    const form = new FormData(event.target as HTMLFormElement);
    const query = Object.fromEntries([...form].map(([name, value]) => [name, String(value).trim()]));
    this.query = new URLSearchParams(query);
    router.replace(query);
    void this.decide();
  }

  private get(name: string): string {
    return this.query.get(name) ?? '';
  }

  private result(): TemplateResult | typeof nothing {
    const {decision} = this;
    if (!decision) {
      return nothing;
    }
    return html`${decision.placements.map(one => html`<section class="section"><div class="section-head"><h2>${one.placement}</h2><span class="dim">${plural(decision.repeat, 'draw')}, as ${decision.device}${one.unfilled ? `, ${count(one.unfilled)} without an ad` : ''}</span><span class="source" title="with the catalog of PostgreSQL and what the node has counted">nginx-ads api · decided at ${time(Date.parse(decision.at))}</span></div>
      ${table({
        caption: `What would be served on ${one.placement}`, rows: one.served, identify: row => `${row.ad_group}/${row.creative}`, empty: 'Nothing would be served.',
        columns: [
          {name: 'Creative', cell: row => html`<a href=${address('creative', row.creative)}>${row.creative}</a>`},
          {name: 'Ad group', cell: row => html`<a href=${address('why', row.ad_group)}>${row.ad_group}</a>`},
          {name: 'Campaign', cell: row => html`<a href=${address('campaign', row.campaign)}>${campaignName(row.campaign)}</a>`},
          {name: 'Served', number: true, by: row => row.count, cell: row => count(row.count)},
          {name: 'Share', number: true, by: row => row.share, cell: row => share(row.share)},
        ],
      })}<h3 class="spaced">Not served</h3>${table({
        caption: `What would not be served on ${one.placement}`, rows: one.not_served, identify: row => row.ad_group, empty: 'Every ad group had a chance.',
        columns: [
          {name: 'Ad group', cell: row => html`<a href=${address('why', row.ad_group)}>${row.ad_group}</a>`},
          {name: 'Campaign', cell: row => html`<a href=${address('campaign', row.campaign)}>${campaignName(row.campaign)}</a>`},
          {name: 'Because of', by: row => row.reason, cell: row => html`${row.reason.replaceAll('_', ' ')}<span class="cell-note">${refusals[row.reason]?.what ?? ''}</span>`},
        ],
      })}</section>`)}`;
  }

  private line(): string {
    const options = (names: [string, string][]) => names.flatMap(([name, option]) => this.get(name) ? [option, this.get(name)] : []);
    const body = bodyOf(this.query) as {placements: string[]; keys?: Record<string, string>};
    return commandLine('decide', ...body.placements.flatMap(id => ['--placement', id]), ...options([['device', '--device'], ['url', '--url'], ['country', '--geo'], ['language', '--language']]),
      ...Object.entries(body.keys ?? {}).flatMap(([name, value]) => ['--kv', `${name}=${value}`]), '--repeat', this.get('repeat') || 1000);
  }

  protected override render(): TemplateResult {
    const known = this.placements.value ?? [];
    const input = (name: string, label: string, hint: string, value = this.get(name)) => html`<label>${label} <input name=${name} autocomplete="off" placeholder=${hint} .value=${value} list=${name === 'placements' ? 'placements-known' : nothing}></label>`;
    return html`<div class="head"><h1>Try a request</h1></div>
      <section class="section"><p class="dim">What nginx would decide for such a request, with the catalog and the figures of now. It counts nothing.</p>
        <form class="report-form" @submit=${(event: Event) => this.submit(event)}>
          ${input('placements', 'Placements', known[0]?.id ?? 'home-top')}<datalist id="placements-known">${known.map(({id, name}) => html`<option value=${id}>${name}</option>`)}</datalist>
          <label>Device <select name="device">${['', 'desktop', 'mobile', 'tablet', 'tv', 'bot'].map(name => html`<option value=${name} ?selected=${name === this.get('device')}>${name || 'any'}</option>`)}</select></label>
          ${fields.map(([name, label, hint]) => input(name, label, hint))}${input('repeat', 'Draws', '1000')}
          <div class="buttons"><button type="submit" class="primary" ?disabled=${this.busy}>Decide</button></div></form>
        ${this.problem ? html`<p class="notice bad" role="alert">${this.problem}</p>` : nothing}${this.get('placements') ? command(this.line()) : nothing}</section>
      ${this.result()}`;
  }
}

define('page-try', TryPage);
