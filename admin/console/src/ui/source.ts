// Where a figure is from, and how old it is.
import {html, type TemplateResult} from 'lit';
import {span, time} from '../core/format.ts';
import type {Store} from '../core/store.ts';
import {define, View} from './view.ts';

const fresh = 3000;
const meanings: Record<string, string> = {PostgreSQL: 'from the database, all nodes together', ads_status: 'counted by this node', ads_live: 'counted by this node, sent once per second'};

class SourceNote extends View {
  static override properties = {of: {attribute: false}};
  declare of: Store<unknown>;
  private timer = 0;

  override connectedCallback(): void {
    super.connectedCallback();
    this.timer = window.setInterval(() => this.requestUpdate(), 1000);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearInterval(this.timer);
  }

  protected override stores(): Store<unknown>[] {
    return [this.of];
  }

  protected override render(): TemplateResult {
    const {name, at, error} = this.of;
    const age = Date.now() - at;
    const state = at === 0 ? 'no answer yet' : age < fresh ? 'now' : `${span(age / 1000)} old`;
    return html`<span class="source ${error ? 'stale' : ''}" title=${[meanings[name], at ? `received at ${time(at)}` : ''].filter(Boolean).join('; ')}>${name} · ${error ? `${error.message}${at ? `; ${state}` : ''}` : state}</span>`;
  }
}

define('source-note', SourceNote);

export const source = (of: Store<unknown>): TemplateResult => html`<source-note .of=${of}></source-note>`;

/** What stands in for values that have not come: the reason, if there is one. */
export const waiting = (of: Store<unknown>): TemplateResult =>
  of.error ? html`<p class="notice bad" role="alert">${of.name}: ${of.error.message}.</p>` : html`<p class="notice" aria-busy="true">Loading…</p>`;
