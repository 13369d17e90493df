// Figures by dimension and range. The address is the report: it can be sent to somebody.
import {change, count, money, share} from '../core/format.ts';
import {withQuery} from '../core/http.ts';
import {poll, type Poll} from '../core/poll.ts';
import type {Figures, Report, ReportRow} from '../core/report.ts';
import {address, router} from '../core/router.ts';
import {session} from '../core/session.ts';
import type {Store} from '../core/store.ts';
import {chart} from '../ui/chart.ts';
import {command, commandLine} from '../ui/command.ts';
import {source, waiting} from '../ui/source.ts';
import {table, type Column} from '../ui/table.ts';
import {define, html, nothing, View, type TemplateResult} from '../ui/view.ts';

type Compared = Figures & {previous?: Figures};
type Row = ReportRow & {previous?: Figures};
type Compare = Omit<Report, 'rows' | 'total'> & {rows: Row[]; total: Compared; previous?: {from: string; to: string}};

const dimensions = ['campaign', 'advertiser', 'ad-group', 'creative', 'placement', 'country', 'device', 'day', 'hour', 'total'];
const words: Record<string, string> = {'ad-group': 'ad group', total: 'all in one'};
const timely = ['day', 'hour'];

interface Metric {
  name: string;
  of: (figures: Figures) => number | null;
  text: (value: number | null, currency: string | null) => string;
  usual?: boolean;
  /** In cents. */
  money?: boolean;
}

const metrics: Record<string, Metric> = {
  requests: {name: 'Requests', of: f => f.requests, text: count},
  fill: {name: 'Fill', of: f => f.fill_rate, text: value => share(value)},
  serves: {name: 'Serves', of: f => f.serves, text: count},
  impressions: {name: 'Impressions', of: f => f.impressions, text: count, usual: true},
  viewables: {name: 'Viewable', of: f => f.viewables, text: count},
  'viewable-rate': {name: 'Viewable rate', of: f => f.viewable_rate, text: value => share(value), usual: true},
  clicks: {name: 'Clicks', of: f => f.clicks, text: count, usual: true},
  ctr: {name: 'CTR', of: f => f.ctr, text: value => share(value, 2), usual: true},
  conversions: {name: 'Conversions', of: f => f.conversions, text: count},
  invalid: {name: 'Invalid', of: f => f.invalid, text: count},
  spend: {name: 'Spend', of: f => f.spend_cents, text: money, usual: true, money: true},
  ecpm: {name: 'eCPM', of: f => f.ecpm_cents, text: money, usual: true, money: true},
};
const usual = Object.keys(metrics).filter(name => metrics[name]!.usual);

const ranges: [from: string, to: string, text: string][] = [['', '', 'Last 30 days'], ['today', 'today', 'Today'], ['yesterday', 'yesterday', 'Yesterday']];

const csvField = (value: unknown): string => {
  const text = String(value ?? '');
  // Spreadsheets run what begins like a formula.
  const plain = /^[=+@\t\r-]/.test(text) && !/^-?\d/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
};

export const csvOf = (report: Compare, names: readonly string[]): string => {
  const parts = report.by === 'total' ? [] : report.by.split(',');
  // Money in the unit of the page, not in cents.
  const value = (name: string, figures: Figures): number | null => {
    const plain = metrics[name]!.of(figures);
    return plain !== null && metrics[name]!.money ? Math.round(plain * 1e4) / 1e6 : plain;
  };
  const titles = names.map(name => metrics[name]!.money && report.currency ? `${name} ${report.currency}` : name);
  const head = [...parts.flatMap(part => [part, `${part} name`]), ...titles, ...report.previous ? titles.map(title => `${title} before`) : []];
  const lines = report.rows.map(row => [
    ...parts.flatMap((_, i) => i === 0 ? [row.key, row.name] : [row.key2, row.name2]),
    ...names.map(name => value(name, row)), ...report.previous ? names.map(name => row.previous ? value(name, row.previous) : '') : [],
  ]);
  return [head, ...lines].map(line => line.map(csvField).join(',')).join('\r\n') + '\r\n';
};

class ReportsPage extends View {
  static override properties = {query: {attribute: false}};
  declare query: URLSearchParams;
  private report: Poll<Compare> | undefined;
  private stop: (() => void) | undefined;
  private asked = '';

  private get(name: string, otherwise = ''): string {
    return this.query.get(name) ?? otherwise;
  }

  private get names(): string[] {
    const chosen = this.get('metrics').split(',').filter(name => metrics[name]);
    return chosen.length ? chosen : usual;
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.stop?.();
    this.stop = this.report = undefined;
    this.asked = '';
  }

  protected override willUpdate(): void {
    const timezone = this.get('timezone', 'UTC');
    const path = withQuery('api/report', {
      by: this.get('by', 'campaign'), from: this.get('from'), to: this.get('to'), timezone, campaign: this.get('campaign'), advertiser: this.get('advertiser'), placement: this.get('placement'), previous: this.get('previous'),
    });
    if (path !== this.asked && this.isConnected) {
      this.stop?.();
      this.asked = path;
      this.report = poll<Compare>('PostgreSQL', path, 60_000);
      this.stop = this.report.follow(() => this.requestUpdate());
    }
  }

  protected override stores(): Store<unknown>[] {
    return [];
  }

  private set(name: string, value: string): void {
    const query = Object.fromEntries(this.query);
    router.replace({...query, [name]: value});
  }

  private choice(name: string, label: string, choices: [value: string, text: string][], value: string): TemplateResult {
    return html`<label>${label} <select name=${name} @change=${(event: Event) => this.set(name, (event.target as HTMLSelectElement).value)}>
      ${choices.map(([one, text]) => html`<option value=${one} ?selected=${one === value}>${text}</option>`)}</select></label>`;
  }

  private text(name: string, label: string, hint = ''): TemplateResult {
    return html`<label>${label} <input name=${name} autocomplete="off" placeholder=${hint || nothing} .value=${this.get(name)} @change=${(event: Event) => this.set(name, (event.target as HTMLInputElement).value.trim())}></label>`;
  }

  private form(): TemplateResult {
    const [first = 'campaign', second = ''] = this.get('by', 'campaign').split(',');
    const named = (list: string[]): [string, string][] => list.map(name => [name, words[name] ?? name]);
    const range = ranges.findIndex(([from, to]) => from === this.get('from') && to === this.get('to'));
    const both = (one: string, two: string) => this.set('by', two && two !== one && one !== 'total' ? `${one},${two}` : one);
    return html`<form class="report-form" @submit=${(event: Event) => event.preventDefault()}>
      <label>By <select name="by" @change=${(event: Event) => both((event.target as HTMLSelectElement).value, second)}>${named(dimensions).map(([value, text]) => html`<option value=${value} ?selected=${value === first}>${text}</option>`)}</select></label>
      <label>and by <select name="by2" ?disabled=${first === 'total'} @change=${(event: Event) => both(first, (event.target as HTMLSelectElement).value)}><option value="">nothing else</option>${named(dimensions.filter(name => name !== first && name !== 'total')).map(([value, text]) => html`<option value=${value} ?selected=${value === second}>${text}</option>`)}</select></label>
      <label>Range <select name="range" @change=${(event: Event) => {
        const [from, to] = ranges[Number((event.target as HTMLSelectElement).value)] ?? ['', ''];
        router.replace({...Object.fromEntries(this.query), from, to});
      }}>${ranges.map(([, , text], i) => html`<option value=${i} ?selected=${i === range}>${text}</option>`)}${range < 0 ? html`<option value="-1" selected>other days</option>` : nothing}</select></label>
      ${this.text('from', 'From', '2026-11-01')}${this.text('to', 'To', '2026-11-30')}${this.text('timezone', 'Time zone', 'UTC')}
      ${this.text('campaign', 'Campaign', 'all')}${session.value?.advertiser ? nothing : this.text('advertiser', 'Advertiser', 'all')}${this.text('placement', 'Placement', 'all')}
      ${this.choice('previous', 'Compare with', [['', 'nothing'], ['1', 'the period before']], this.get('previous'))}
      <fieldset><legend>Metrics</legend>${Object.entries(metrics).map(([name, {name: text}]) => html`<label class="check"><input type="checkbox" name="metric" value=${name} .checked=${this.names.includes(name)} @change=${(event: Event) => {
        const on = (event.target as HTMLInputElement).checked;
        this.set('metrics', Object.keys(metrics).filter(one => one === name ? on : this.names.includes(one)).join(','));
      }}> ${text}</label>`)}</fieldset></form>`;
  }

  private cell(row: Compared, {of, text}: Metric): TemplateResult {
    const now = of(row);
    const before = row.previous ? of(row.previous) : null;
    return html`${text(now, null)}${row.previous ? html`<span class="cell-note">${before === null ? 'none before' : html`${text(before, null)} before${now !== null && before ? html`, ${change(now, before)}` : nothing}`}</span>` : nothing}`;
  }

  private columns(report: Compare): Column<Row>[] {
    const parts = report.by === 'total' ? [] : report.by.split(',');
    return [
      ...parts.map((part, i): Column<Row> => ({
        name: (words[part] ?? part).replace(/^./, first => first.toUpperCase()), by: row => String((i ? row.name2 || row.key2 : row.name || row.key) ?? ''),
        cell: row => {
          const [key, name] = i ? [row.key2, row.name2] : [row.key, row.name];
          const shown = name || (key === '' ? 'none' : key);
          return html`${part === 'campaign' && key ? html`<a href=${address('campaign', key)}>${shown}</a>` : shown}${name ? html`<span class="cell-note">${key}</span>` : nothing}`;
        },
      })),
      ...parts.length ? [] : [{name: 'All', cell: () => 'all'}],
      ...this.names.map((name): Column<Row> => ({name: metrics[name]!.money && report.currency ? `${metrics[name]!.name}, ${report.currency}` : metrics[name]!.name, number: true, by: row => metrics[name]!.of(row), cell: row => this.cell(row, metrics[name]!)})),
    ];
  }

  private curve(report: Compare): TemplateResult | typeof nothing {
    const metric = metrics[this.names[0]!]!;
    if (!timely.includes(report.by) || report.rows.length < 2) {
      return nothing;
    }
    const rows = report.rows.toSorted((a, b) => String(a.key) < String(b.key) ? -1 : 1);
    const values = rows.map(row => metric.of(row));
    const most = values.reduce<number>((i, value, j) => (value ?? 0) > (values[i] ?? 0) ? j : i, 0);
    return chart({
      finding: `${metric.name}: ${metric.text(metric.of(report.total), report.currency)} in all, most on ${rows[most]!.key} with ${metric.text(values[most] ?? null, report.currency)}.`,
      name: `${metric.name} by ${report.by}`, x: rows.map((_, i) => i), xName: words[report.by] ?? report.by, xText: i => String(rows[Math.round(i)]?.key ?? ''), ticks: [0, Math.floor((rows.length - 1) / 2), rows.length - 1],
      text: value => metric.text(value, report.currency), lines: [
        {name: metric.name, values, color: 'main', filled: true},
        ...report.previous ? [{name: 'The period before', values: rows.map(row => row.previous ? metric.of(row.previous) : null), color: 'before' as const, dashed: true}] : [],
      ],
    });
  }

  private save(report: Compare): void {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([csvOf(report, this.names)], {type: 'text/csv'}));
    link.download = `report-${report.by.replace(',', '-')}-${report.from.slice(0, 10)}.csv`;
    link.click();
    window.setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  private line(): string {
    const options = ['from', 'to', 'timezone', 'campaign', 'advertiser', 'placement'].flatMap(name => this.get(name) ? [`--${name}`, this.get(name)] : []);
    return commandLine('report', '--by', this.get('by', 'campaign'), ...options, ...this.get('previous') ? ['--previous'] : []);
  }

  protected override render(): TemplateResult {
    const report = this.report;
    const value = report?.value;
    return html`<div class="head"><h1>Reports</h1></div><section class="section">${this.form()}</section>
      <section class="section"><div class="section-head"><h2>${value ? `${value.from.slice(0, 16).replace('T', ' ')} to ${value.to.slice(0, 16).replace('T', ' ')} UTC` : 'Report'}</h2>${report ? source(report) : nothing}</div>
        ${report?.error ? waiting(report) : nothing}
        ${value ? html`${this.curve(value)}${table({
          caption: `Report by ${value.by}`, rows: value.rows, columns: this.columns(value), identify: row => `${row.key}/${row.key2}`, empty: 'There are no figures in this range.', limit: 100,
        })}${value.rows.length > 1 ? html`<p class="report-total"><b>In all:</b> ${this.names.map((name, i) => html`${i ? ', ' : ''}${metrics[name]!.name.replace(/^[A-Z](?=[a-z])/, first => first.toLowerCase())} ${metrics[name]!.text(metrics[name]!.of(value.total), name === 'spend' ? value.currency : null)}`)}</p>` : nothing}
          <p><button @click=${() => this.save(value)} ?disabled=${value.rows.length === 0}>Save as CSV</button></p>` : report?.error ? nothing : html`<p class="notice" aria-busy="true">Loading…</p>`}
        ${command(this.line())}</section>`;
  }
}

define('page-reports', ReportsPage);
