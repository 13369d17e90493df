// What an edit changes, or has changed.
import {html, nothing, type TemplateResult} from 'lit';
import {money, when, zone} from '../core/format.ts';
import type {Change, FieldChange, HistoryEdit} from '../core/http.ts';

export type {Change, FieldChange} from '../core/http.ts';

const instant = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;
const plain = (list: unknown[]): boolean => list.every(one => typeof one === 'string' || typeof one === 'number');

const text = (field: string, value: unknown): string => {
  if (value === null || value === undefined || (Array.isArray(value) && value.length === 0)) {
    return 'none';
  }
  if (typeof value === 'number') {
    return field.endsWith('_cents') ? money(value) : String(value);
  }
  if (typeof value === 'string') {
    return instant.test(value) ? `${when(value)}, ${zone}` : value;
  }
  return Array.isArray(value) && plain(value) ? value.join(', ') : JSON.stringify(value);
};

const fields = (list: FieldChange[]): TemplateResult => html`<ul class="diff">${list.map(({field, before, after}) => html`<li><span class="field-name">${field.replace(/_cents$/, '')}</span>
  <del>${text(field, before)}</del><span aria-hidden="true"> → </span><span class="unseen"> becomes </span><ins>${text(field, after)}</ins></li>`)}</ul>`;

export const changes = (list: Change[]): TemplateResult => html`<ul class="changes">${list.map(({change, object, id, name, fields: all}) =>
  html`<li><b>${object} ${id}</b> ${name && name !== String(id) ? `“${name}”` : ''} ${change}${all.length ? fields(all) : nothing}</li>`)}</ul>`;

export const edit = ({actor, at, changes: all}: HistoryEdit, more: unknown = nothing): TemplateResult =>
  html`<li><p><b>${actor || 'unknown'}</b> <time datetime=${at}>${when(at)}</time> ${more}</p>${changes(all)}</li>`;

export const edits = (list: HistoryEdit[]): TemplateResult => html`<ol class="history">${list.map(one => edit(one))}</ol>`;
