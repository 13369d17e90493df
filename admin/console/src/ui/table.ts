// A table that sorts, and scrolls by itself where it is too wide.
import {html, nothing, type TemplateResult} from 'lit';
import {repeat} from 'lit/directives/repeat.js';
import {define, View} from './view.ts';

export interface Column<Row> {
  name: string;
  /** What a cell shows. */
  cell: (row: Row) => unknown;
  /** What it is sorted by; without it the column cannot be sorted. */
  by?: (row: Row) => number | string | null | undefined;
  number?: boolean;
  /** Left out on narrow screens. */
  wide?: boolean;
  /** It has buttons and links. */
  doing?: boolean;
  title?: string;
}

const compare = (a: number | string | null | undefined, b: number | string | null | undefined): number => {
  if (a == null || b == null) {
    return a == null ? (b == null ? 0 : 1) : -1;
  }
  return typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b), 'en');
};

class DataTable extends View {
  static override properties = {
    columns: {attribute: false}, rows: {attribute: false}, identify: {attribute: false}, caption: {}, empty: {}, limit: {type: Number}, sorted: {state: true}, all: {state: true},
  };
  declare columns: Column<unknown>[];
  declare rows: unknown[];
  declare identify: (row: unknown) => unknown;
  declare caption: string;
  declare empty: string;
  declare limit: number;
  declare private sorted: {column: string; descending: boolean} | undefined;
  declare private all: boolean;

  constructor() {
    super();
    this.columns = [];
    this.rows = [];
    this.identify = row => row;
    this.caption = '';
    this.empty = 'None.';
    this.limit = 50;
    this.all = false;
  }

  private sort(column: Column<unknown>): void {
    const same = this.sorted?.column === column.name;
    this.sorted = {column: column.name, descending: same ? !this.sorted!.descending : Boolean(column.number)};
  }

  private get shown(): unknown[] {
    const by = this.columns.find(column => column.name === this.sorted?.column)?.by;
    const rows = by ? this.rows.toSorted((a, b) => compare(by(a), by(b)) * (this.sorted!.descending && by(a) != null && by(b) != null ? -1 : 1)) : this.rows;
    return this.all ? rows : rows.slice(0, this.limit);
  }

  private head(column: Column<unknown>): TemplateResult {
    const sorted = this.sorted?.column === column.name ? (this.sorted.descending ? 'descending' : 'ascending') : undefined;
    return html`<th scope="col" class="${column.number ? 'number' : ''} ${column.wide ? 'wide' : ''}" aria-sort=${sorted ?? nothing} title=${column.title ?? nothing}>
      ${column.by ? html`<button class="sorter" @click=${() => this.sort(column)}>${column.name}<span aria-hidden="true">${sorted === 'ascending' ? '↑' : sorted ? '↓' : ''}</span></button>` : column.name}</th>`;
  }

  protected override render(): TemplateResult {
    if (this.rows.length === 0) {
      return html`<p class="notice">${this.empty}</p>`;
    }
    const shown = this.shown;
    return html`<div class="scroller" tabindex="0" role="region" aria-label=${this.caption}><table><caption class="unseen">${this.caption}</caption>
      <thead><tr>${this.columns.map(column => this.head(column))}</tr></thead>
      <tbody>${repeat(shown, this.identify, row => html`<tr>${this.columns.map((column, i) =>
        i === 0 ? html`<th scope="row">${column.cell(row)}</th>` : html`<td class="${column.number ? 'number' : ''} ${column.wide ? 'wide' : ''} ${column.doing ? 'doing' : ''}">${column.cell(row)}</td>`)}</tr>`)}</tbody></table></div>
      ${shown.length < this.rows.length ? html`<button class="more" @click=${() => { this.all = true; }}>Show all ${this.rows.length}</button>` : nothing}`;
  }
}

define('data-table', DataTable);

export interface Table<Row> {
  caption: string;
  columns: Column<Row>[];
  rows: Row[];
  /** What a row stays the same by. */
  identify?: (row: Row) => unknown;
  empty?: string;
  limit?: number;
}

export const table = <Row>({caption, columns, rows, identify = row => row, empty = 'None.', limit = 50}: Table<Row>): TemplateResult =>
  html`<data-table .caption=${caption} .columns=${columns} .rows=${rows} .identify=${identify} .empty=${empty} .limit=${limit}></data-table>`;

/** Names with values. */
export const facts = (list: [name: string, value: unknown][]): TemplateResult =>
  html`<dl class="facts">${list.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
