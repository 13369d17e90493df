// A form that edits one object through the API: it asks what would change while one types, saves with If-Match, shows the
// validator's messages at their fields, and what somebody else has changed meanwhile.
import {html, nothing, type TemplateResult} from 'lit';
import {serving} from '../core/fleet.ts';
import {api, Refused, type Fault, type HistoryEdit} from '../core/http.ts';
import {refreshAll} from '../core/poll.ts';
import {command} from './command.ts';
import {changes, edits, type Change} from './diff.ts';
import {field, otherFaults, type Field} from './field.ts';
import {notifySaved} from './notify.ts';
import {define, View} from './view.ts';

export interface Edited {
  id: number | string;
  dry_run: boolean;
  changed: boolean;
  changes: Change[];
  removed: {creative: number; what: string[]}[];
  warnings: string[];
}

export type Values = Record<string, string>;

export interface Edit {
  title: string;
  /** Of the button. */
  save: string;
  danger?: boolean;
  note?: unknown;
  method: 'POST' | 'PATCH';
  path: string;
  /** The ETag of what is edited. */
  version?: string;
  fields: Field[];
  /** Throws WrongInput. */
  body: (values: Values) => unknown;
  /** What does the same. */
  command: (values: Values) => string;
  saved?: (edited: Edited) => void;
  cancel: () => void;
}

/** What was typed cannot be sent. */
export class WrongInput extends Error {
  constructor(readonly faults: Fault[]) {
    super('wrong input');
  }
}

const typing = 350;

class EditForm extends View {
  static override properties = {edit: {attribute: false}, values: {state: true}, faults: {state: true}, conflict: {state: true}, problem: {state: true}, preview: {state: true}, busy: {state: true}};
  declare edit: Edit;
  declare private values: Values;
  declare private faults: Fault[];
  declare private conflict: {version: string; changes: HistoryEdit[]} | undefined;
  declare private problem: string;
  declare private preview: Edited | undefined;
  declare private busy: boolean;
  private timer = 0;
  private asked = 0;
  /** What was shown when the form was opened: the page may have fetched a newer version since. */
  private begun: Edit | undefined;

  constructor() {
    super();
    this.values = {};
    this.faults = [];
    this.problem = '';
    this.busy = false;
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearTimeout(this.timer);
    this.asked++;
  }

  protected override firstUpdated(): void {
    if (this.edit.fields.length === 0) {
      void this.look();
    }
    this.querySelector<HTMLElement>('input, select, textarea, button')?.focus();
  }

  protected override willUpdate(): void {
    this.begun ??= this.edit;
  }

  private get all(): Values {
    return {...Object.fromEntries(this.begun!.fields.map(({path, value}) => [path, value])), ...this.values};
  }

  private changed(path: string, value: string): void {
    this.values = {...this.values, [path]: value};
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.look(), typing);
  }

  private send(dryRun: boolean): Promise<{value: Edited}> {
    const {method, path, version, body} = this.begun!;
    return api<Edited>(method, path, {
      body: body(this.all), query: {dry_run: dryRun},
      ...version ? {version: this.conflict?.version ?? version} : {},
    });
  }

  private refused(error: unknown): void {
    this.preview = undefined;
    if (error instanceof WrongInput) {
      this.faults = error.faults;
      this.problem = '';
    } else if (error instanceof Refused && error.status === 412) {
      this.conflict = {version: `"${error.version}"`, changes: error.changes};
    } else if (error instanceof Refused) {
      this.faults = error.faults;
      this.problem = error.faults.length ? '' : error.message;
    } else {
      this.problem = String(error);
    }
  }

  /** What would be changed. */
  private async look(): Promise<void> {
    const asked = ++this.asked;
    try {
      const {value} = await this.send(true);
      if (asked === this.asked) {
        this.preview = value;
        this.faults = [];
        this.problem = '';
      }
    } catch (error) {
      if (asked === this.asked) {
        this.refused(error);
      }
    }
  }

  private async save(event: Event): Promise<void> {
    event.preventDefault();
    clearTimeout(this.timer);
    this.asked++;
    this.busy = true;
    try {
      const before = await serving();
      const {value} = await this.send(false);
      notifySaved(html`<p><b>Saved.</b></p>${value.changes.length ? changes(value.changes) : html`<p>Nothing was different.</p>`}${value.warnings.map(warning => html`<p>Note: ${warning}</p>`)}`, before);
      await refreshAll(`api${this.begun!.path.replace(/\/(?:pause|resume|archive|clone|revert|start|stop)$/, '')}`);
      this.edit.saved?.(value);
    } catch (error) {
      this.refused(error);
      await this.updateComplete;
      this.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
    } finally {
      this.busy = false;
    }
  }

  private line(): string {
    try {
      return this.edit.command(this.all);
    } catch {
      return '';
    }
  }

  protected override render(): TemplateResult {
    const {title, save, danger, note, fields, cancel} = this.edit;
    const values = this.all;
    const line = this.line();
    return html`<form class="edit" novalidate @submit=${(event: Event) => void this.save(event)} @keydown=${(event: KeyboardEvent) => { if (event.key === 'Escape') { cancel(); } }}>
      <h3>${title}</h3>${note ? html`<div class="dim">${note}</div>` : nothing}
      ${this.conflict ? html`<div class="conflict" role="alert"><p><b>Somebody else has changed this meanwhile.</b> Look at what they did; saving again writes yours on top of it.</p>${edits(this.conflict.changes)}</div>` : nothing}
      ${otherFaults(this.faults, fields)}
      ${this.problem ? html`<p class="notice bad" role="alert">${this.problem}</p>` : nothing}
      <div class="fields">${fields.map(one => field({...one, value: values[one.path] ?? ''}, this.faults, value => this.changed(one.path, value)))}</div>
      ${this.preview ? html`<div class="preview" aria-live="polite">${this.preview.changed ? html`<p class="dim">This changes</p>${changes(this.preview.changes)}` : html`<p class="dim">Nothing would change.</p>`}
        ${this.preview.warnings.map(warning => html`<p class="notice">${warning}</p>`)}
        ${this.preview.removed.map(({what}) => html`<p class="notice">Removed from the markup: ${what.join('; ')}</p>`)}</div>` : nothing}
      <div class="buttons"><button type="submit" class=${danger ? 'danger' : 'primary'} ?disabled=${this.busy}>${this.conflict ? `${save} on top` : save}</button><button type="button" @click=${cancel}>Cancel</button></div>
      ${line ? command(line) : nothing}</form>`;
  }
}

define('edit-form', EditForm);

export const editForm = (edit: Edit): TemplateResult => html`<edit-form .edit=${edit}></edit-form>`;

/** "12.50" as cents. */
export const centsOf = (path: string, text: string): number => {
  const plain = text.trim().replace(',', '.');
  if (!/^\d+(\.\d{1,6})?$/.test(plain)) {
    throw new WrongInput([{object: '', path, message: 'must be an amount like 50.00'}]);
  }
  return Math.round(Number(plain) * 1e8) / 1e6;
};

// ---- in a dialog ----

class EditDialog extends View {
  static override properties = {edit: {attribute: false}};
  declare edit: Edit;

  protected override firstUpdated(): void {
    this.querySelector('dialog')!.showModal();
  }

  protected override render(): TemplateResult {
    return html`<dialog aria-label=${this.edit.title} @cancel=${(event: Event) => { event.preventDefault(); this.edit.cancel(); }}>${editForm(this.edit)}</dialog>`;
  }
}

define('edit-dialog', EditDialog);

/** Asks for an edit over the page; resolves with what was saved, or nothing. */
export const ask = (edit: Omit<Edit, 'saved' | 'cancel'>): Promise<Edited | undefined> => new Promise(resolve => {
  const before = document.activeElement;
  const dialog = document.createElement('edit-dialog') as EditDialog;
  const close = (edited?: Edited) => {
    removeEventListener('hashchange', left);
    dialog.remove();
    if (before instanceof HTMLElement) {
      before.focus();
    }
    resolve(edited);
  };
  // Who goes back leaves the question as well.
  const left = () => close();
  addEventListener('hashchange', left);
  dialog.edit = {...edit, saved: edited => close(edited), cancel: () => close()};
  document.body.append(dialog);
});
