// What an edit changes, or has changed.
import {html, nothing, type TemplateResult} from 'lit';
import {money, when} from '../core/format.ts';
import type {Change, FieldChange, HistoryEdit} from '../core/http.ts';

export type {Change, FieldChange} from '../core/http.ts';

const text = (field: string, value: unknown): string => typeof value === 'number' && field.endsWith('_cents') ? money(value) : value === null || value === undefined ? 'none' : typeof value === 'string' ? value : JSON.stringify(value);

const fields = (list: FieldChange[]): TemplateResult => html`<ul class="diff">${list.map(({field, before, after}) => html`<li><span class="field-name">${field.replace(/_cents$/, '')}</span>
  <del>${text(field, before)}</del><span aria-hidden="true"> → </span><span class="unseen"> becomes </span><ins>${text(field, after)}</ins></li>`)}</ul>`;

export const changes = (list: Change[]): TemplateResult => html`<ul class="changes">${list.map(({change, object, id, name, fields: all}) =>
  html`<li><b>${object} ${id}</b> ${name && name !== String(id) ? `“${name}”` : ''} ${change}${all.length ? fields(all) : nothing}</li>`)}</ul>`;

export const edit = ({actor, at, changes: all}: HistoryEdit, more: unknown = nothing): TemplateResult =>
  html`<li><p><b>${actor || 'unknown'}</b> <time datetime=${at}>${when(at)}</time> ${more}</p>${changes(all)}</li>`;

export const edits = (list: HistoryEdit[]): TemplateResult => html`<ol class="history">${list.map(one => edit(one))}</ol>`;
