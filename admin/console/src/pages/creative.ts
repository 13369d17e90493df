// A creative: how it looks, what it does, and the form that makes and changes one.
import {keyed} from 'lit/directives/keyed.js';
import {count, ratio, share} from '../core/format.ts';
import {api, Refused} from '../core/http.ts';
import {poll, type Poll} from '../core/poll.ts';
import {report, type Report} from '../core/report.ts';
import {address, router} from '../core/router.ts';
import {session} from '../core/session.ts';
import type {Store} from '../core/store.ts';
import {act} from '../ui/actions.ts';
import {command, commandLine} from '../ui/command.ts';
import {editForm, type Edit, type Values} from '../ui/edit.ts';
import type {Field} from '../ui/field.ts';
import {statusChip} from '../ui/pace.ts';
import {source, waiting} from '../ui/source.ts';
import {facts, table} from '../ui/table.ts';
import {define, html, nothing, View, type TemplateResult} from '../ui/view.ts';

type Type = 'image' | 'html' | 'native' | 'tag';

interface Creative {
  id: number;
  ad_group: number;
  name?: string;
  type: Type;
  status: string;
  weight: number;
  width?: number | null;
  height?: number | null;
  content: Record<string, string>;
  click_url: string;
  impression_url?: string | null;
}

interface Row extends Creative {
  delivery: {impressions: number; clicks: number; ctr: number | null};
}

interface Stored {
  url: string;
  type: string;
  width: number;
  height: number;
  bytes: number;
}

const every = 15_000;
const types: [Type, string][] = [['html', 'HTML'], ['image', 'image'], ['native', 'native']];
const z95 = 1.959964;

/** Wilson's interval of a rate, at 95 %. */
export const wilson = (part: number, all: number): [number, number] | null => {
  if (all <= 0) {
    return null;
  }
  const rate = part / all;
  const spread = z95 * Math.sqrt(rate * (1 - rate) / all + z95 ** 2 / (4 * all ** 2));
  const middle = rate + z95 ** 2 / (2 * all);
  return [Math.max(0, (middle - spread) / (1 + z95 ** 2 / all)), Math.min(1, (middle + spread) / (1 + z95 ** 2 / all))];
};

const contentFields = (type: Type, of: Partial<Creative>): Field[] => {
  const content = of.content ?? {};
  switch (type) {
    case 'html': return [{path: 'content.markup', label: 'Markup', kind: 'long', value: content['markup'] ?? '', required: true, hint: 'It is cleaned when it is saved: what is removed is shown below.'}];
    case 'image': return [{path: 'content.src', label: 'Image', value: content['src'] ?? '', required: true, hint: 'An https URL, or that of an uploaded image.'}, {path: 'content.alt', label: 'Alternative text', value: content['alt'] ?? ''}];
    case 'native': return [...new Set([...Object.keys(content), 'title', 'body', 'image'])].map(name => ({path: `content.${name}`, label: name[0]!.toUpperCase() + name.slice(1), value: content[name] ?? ''}));
    default: return [{path: 'content.markup', label: 'Markup', kind: 'long' as const, value: content['markup'] ?? '', required: true}];
  }
};

const fieldsOf = (type: Type, of: Partial<Creative>): Field[] => [
  {path: 'name', label: 'Name', value: of.name ?? ''},
  ...contentFields(type, of),
  {path: 'click_url', label: 'Click URL', value: of.click_url ?? '', required: true},
  {path: 'impression_url', label: 'Impression URL', value: of.impression_url ?? '', hint: 'A third party’s pixel; empty without one.'},
  {path: 'width', label: 'Width', kind: 'number', value: of.width ? String(of.width) : ''},
  {path: 'height', label: 'Height', kind: 'number', value: of.height ? String(of.height) : '', hint: 'Both or none: none fits any placement.'},
  {path: 'weight', label: 'Weight', kind: 'number', value: String(of.weight ?? 1)},
];

const whole = (text: string): number | string => /^\d+$/.test(text) ? Number(text) : text;

const bodyOf = (type: Type, values: Values): Record<string, unknown> => {
  const content: Record<string, string | null> = {};
  for (const [path, value] of Object.entries(values)) {
    if (path.startsWith('content.')) {
      content[path.slice(8)] = value || type !== 'native' ? value : null;
    }
  }
  return {
    name: values['name'] ?? '', content, click_url: values['click_url'] ?? '', impression_url: values['impression_url'] || null,
    width: whole(values['width'] || '0'), height: whole(values['height'] || '0'), weight: whole(values['weight'] || '1'),
  };
};

const lineOf = (values: Values): string[] => [
  ...values['name'] ? ['--name', values['name']] : [], ...Object.entries(values).filter(([path, value]) => path.startsWith('content.') && value).flatMap(([path, value]) => ['--set', `${path}=${JSON.stringify(value)}`]),
  '--click-url', values['click_url'] ?? '', ...values['impression_url'] ? ['--impression-url', values['impression_url']] : [],
  ...values['width'] ? ['--width', values['width']] : [], ...values['height'] ? ['--height', values['height']] : [], '--weight', values['weight'] || '1',
];

class CreativePage extends View {
  static override properties = {creative: {}, group: {}, type: {}, editing: {state: true}, image: {state: true}, problem: {state: true}};
  declare creative: string;
  declare group: string;
  declare type: string;
  declare private editing: boolean;
  declare private image: Stored | undefined;
  declare private problem: string;
  private list!: Poll<Row[]>;
  private object!: Poll<Creative>;
  private figures!: Poll<Report>;

  constructor() {
    super();
    this.editing = false;
    this.problem = '';
  }

  private get fresh(): boolean {
    return this.creative === 'new';
  }

  protected override stores(): Store<unknown>[] {
    const id = encodeURIComponent(this.creative);
    this.list = poll('PostgreSQL', 'api/creatives', every);
    this.object = poll('PostgreSQL', `api/creatives/${id}`, every);
    this.figures = report({by: 'creative'}, 60_000);
    return this.fresh ? [] : this.creative ? [this.object, this.figures] : [this.list];
  }

  private async upload(event: Event): Promise<void> {
    const input = event.target as HTMLInputElement;
    const file = input.files?.[0];
    if (!file) {
      return;
    }
    this.image = undefined;
    try {
      this.image = (await api<Stored>('POST', '/images', {body: file})).value;
      this.problem = '';
    } catch (error) {
      this.problem = error instanceof Refused ? error.message : String(error);
    }
    input.value = '';
  }

  private uploader(): TemplateResult | typeof nothing {
    return session.may('uploadImage') ? html`<p><label>Upload an image <input type="file" name="image" accept="image/png,image/jpeg,image/gif,image/webp,image/avif" @change=${(event: Event) => void this.upload(event)}></label></p>
      ${this.problem ? html`<p class="notice bad" role="alert">${this.problem}</p>` : nothing}
      ${this.image ? html`<p class="notice good">Stored as <code>${this.image.url}</code>: ${this.image.type}, ${this.image.width}×${this.image.height}, ${count(this.image.bytes)} bytes.</p>` : nothing}` : nothing;
  }

  // ---- the form ----

  private get known(): Type {
    return types.find(([name]) => name === this.type)?.[0] ?? 'html';
  }

  private form(): TemplateResult {
    const of = this.fresh ? undefined : this.object.value;
    const type = of?.type ?? this.known;
    const image: Partial<Creative> = this.image ? {content: {...of?.content, src: this.image.url}, width: this.image.width, height: this.image.height} : {};
    const done = () => { this.editing = false; };
    const edit: Edit = {
      title: of ? `Change creative ${of.id}` : `New ${type} creative of ad group ${this.group}`, save: of ? 'Save' : 'Create', method: of ? 'PATCH' : 'POST', path: of ? `/creatives/${of.id}` : '/creatives',
      ...of ? {version: this.object.version} : {}, fields: fieldsOf(type, {...of, ...type === 'image' ? image : {}}),
      body: values => of ? bodyOf(type, values) : {...bodyOf(type, values), type, ad_group: whole(this.group)},
      command: values => of ? commandLine('creative', 'update', of.id, ...lineOf(values)) : commandLine('creative', 'create', '--ad-group', this.group, '--type', type, ...lineOf(values)),
      saved: edited => { done(); if (!of) { router.go(address('creative', edited.id)); } }, cancel: () => { done(); if (!of) { router.go(address('creative')); } },
    };
    // With another image the form begins with what is known of it.
    return html`${type === 'image' ? this.uploader() : nothing}${keyed(this.image?.url, editForm(edit))}`;
  }

  private make(): TemplateResult {
    return html`<div class="head"><h1>New creative</h1><a href="#/creative">All creatives</a></div><section class="section">
      <div class="report-form"><label>Ad group <input name="group" inputmode="numeric" .value=${this.group} @change=${(event: Event) => router.go(address('creative', 'new', {group: (event.target as HTMLInputElement).value.trim(), type: this.known}))}></label>
        <label>Type <select name="type" @change=${(event: Event) => router.go(address('creative', 'new', {group: this.group, type: (event.target as HTMLSelectElement).value}))}>${types.map(([value, text]) => html`<option value=${value} ?selected=${value === this.known}>${text}</option>`)}</select></label></div>
      ${this.group ? this.form() : html`<p class="notice">Name the ad group that it belongs to, by its id.</p>`}</section>`;
  }

  // ---- all, and one ----

  private all(): TemplateResult {
    const rows = this.list.value;
    return html`<div class="head"><h1>Creatives</h1>${session.may('createCreative') ? html`<div class="actions"><a href=${address('creative', 'new')}>New creative</a></div>` : nothing}</div>
      <section class="section"><div class="section-head"><h2>All</h2><span class="dim">last 7 days</span>${source(this.list)}</div>${rows ? table({
        caption: 'Creatives', rows, identify: row => row.id, empty: 'There are no creatives yet.',
        columns: [
          {name: 'Creative', by: row => row.name ?? '', cell: row => html`<a href=${address('creative', row.id)}>${row.name || `Creative ${row.id}`}</a><span class="cell-note">${row.id}, ${row.type}${row.width ? `, ${row.width}×${row.height}` : ''}</span>`},
          {name: 'Status', by: row => row.status, cell: row => statusChip(row.status)},
          {name: 'Ad group', by: row => row.ad_group, cell: row => session.may('getAdGroup') ? html`<a href=${address('ad-group', row.ad_group)}>${row.ad_group}</a>` : row.ad_group},
          {name: 'Impressions', number: true, by: row => row.delivery.impressions, cell: row => count(row.delivery.impressions)},
          {name: 'CTR', number: true, by: row => row.delivery.ctr, cell: row => share(row.delivery.ctr ?? ratio(row.delivery.clicks, row.delivery.impressions), 2)},
        ],
      }) : waiting(this.list)}</section>`;
  }

  private delivered(of: Creative): TemplateResult {
    const value = this.figures.value;
    if (!value) {
      return waiting(this.figures);
    }
    const row = value.rows.find(({key}) => Number(key) === of.id);
    const range = row ? wilson(row.clicks, row.impressions) : null;
    return row && range ? facts([
      ['Served', count(row.serves)],
      ['Rendered', html`${share(ratio(row.impressions, row.serves))} <span class="dim">${count(row.impressions)} impressions</span>`],
      ['Viewable', share(row.viewable_rate)],
      ['CTR', html`${share(row.ctr, 2)} <span class="dim">likely ${share(range[0], 2)} to ${share(range[1], 2)}, of ${count(row.clicks)} clicks</span>`],
      ['Conversions', count(row.conversions)],
    ]) : html`<p class="notice">It had no impression in the last 30 days.</p>`;
  }

  private actions(of: Creative): TemplateResult {
    const named = {kind: 'creative' as const, id: of.id, name: of.name ?? ''};
    const active = of.status === 'active';
    return html`<div class="actions">
      ${session.may('updateCreative') && session.value?.role !== 'operator' && of.status !== 'archived' ? html`<button @click=${() => { this.editing = true; }}>Edit</button>` : nothing}
      ${(active || of.status === 'paused') && session.may(active ? 'pauseCreative' : 'resumeCreative') ? html`<button @click=${() => void act(active ? 'pause' : 'resume', named)}>${active ? 'Pause' : 'Resume'}</button>` : nothing}
      ${session.may('cloneCreative') ? html`<button @click=${() => void act('clone', named)}>Clone</button>` : nothing}
      ${session.may('archiveCreative') && of.status !== 'archived' ? html`<button @click=${() => void act('archive', named)}>Archive</button>` : nothing}</div>`;
  }

  private one(): TemplateResult {
    const of = this.object.value;
    if (!of) {
      return html`<div class="head"><h1>Creative ${this.creative}</h1></div>${waiting(this.object)}`;
    }
    return html`<div class="head"><h1>${of.name || `Creative ${of.id}`}</h1>${statusChip(of.status)}<a href="#/creative">All creatives</a>${this.actions(of)}</div>
      <section class="section"><div class="section-head"><h2>Preview</h2><span class="dim">in a sandbox: no scripts, no origin</span></div>
        <div class="scroller" tabindex="0" role="region" aria-label="Preview"><iframe class="preview-frame" title="Preview of creative ${of.id}" sandbox="" referrerpolicy="no-referrer" width=${of.width || 600} height=${of.height || 200} src="api/creatives/${of.id}/preview?version=${encodeURIComponent(this.object.version.replaceAll('"', ''))}"></iframe></div></section>
      <div class="columns even"><section class="section"><div class="section-head"><h2>Terms</h2>${source(this.object)}</div>
        ${this.editing ? this.form() : facts([
          ['Type', of.type], ['Size', of.width ? `${of.width}×${of.height}` : 'fits any placement'], ['Weight', count(of.weight)],
          ['Ad group', session.may('whyAdGroup') ? html`<a href=${address('why', of.ad_group)}>${of.ad_group}</a>` : of.ad_group],
          ...Object.entries(of.content).map(([name, value]): [string, unknown] => [name[0]!.toUpperCase() + name.slice(1), html`<code>${value}</code>`]),
          ['Click URL', html`<code>${of.click_url}</code>`], ...of.impression_url ? [['Impression URL', html`<code>${of.impression_url}</code>`] as [string, unknown]] : [],
        ])}${this.editing ? nothing : command(commandLine('creative', 'show', of.id))}</section>
        <section class="section"><div class="section-head"><h2>Figures</h2><span class="dim">last 30 days</span>${source(this.figures)}</div>${this.delivered(of)}</section></div>`;
  }

  protected override render(): TemplateResult {
    return this.fresh ? this.make() : this.creative ? this.one() : this.all();
  }
}

define('page-creative', CreativePage);
