// What an edit changes, or has changed.
import {html, nothing, type TemplateResult} from 'lit';
import {when} from '../core/format.ts';
import type {HistoryEntry} from '../core/http.ts';

export interface FieldChange {
  field: string;
  before: unknown;
  after: unknown;
}

export interface Change {
  change: 'added' | 'changed' | 'archived';
  object: string;
  id: string | number;
  name: string;
  fields: FieldChange[];
}

const text = (value: unknown): string => value === null || value === undefined ? 'none' : typeof value === 'string' ? value : JSON.stringify(value);

const fields = (list: FieldChange[]): TemplateResult => html`<ul class="diff">${list.map(({field, before, after}) => html`<li><span class="field-name">${field}</span>
  <del>${text(before)}</del><span aria-hidden="true"> → </span><span class="unseen"> becomes </span><ins>${text(after)}</ins></li>`)}</ul>`;

export const changes = (list: Change[]): TemplateResult => html`<ul class="changes">${list.map(({change, object, id, name, fields: all}) =>
  html`<li><b>${object} ${id}</b> ${name && name !== String(id) ? `“${name}”` : ''} ${change}${all.length ? fields(all) : nothing}</li>`)}</ul>`;

/** The members in which two rows of the history differ. */
export const differences = ({before, after}: HistoryEntry): FieldChange[] => {
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  return [...names].filter(name => !/^(version|updated_at|created_at)$/.test(name) && JSON.stringify(before?.[name]) !== JSON.stringify(after?.[name]))
    .map(name => ({field: name, before: before?.[name], after: after?.[name]}));
};

const actions: Record<string, string> = {insert: 'created', update: 'changed', delete: 'removed'};

export const entries = (list: HistoryEntry[]): TemplateResult => html`<ol class="history">${list.map(entry => html`<li><p><b>${entry.actor || 'unknown'}</b> ${actions[entry.action] ?? entry.action} ${entry.table.replace(/s$/, '').replaceAll('_', ' ')} ${entry.id} <time datetime=${entry.at}>${when(entry.at)}</time></p>
  ${entry.before && entry.after ? fields(differences(entry)) : nothing}</li>`)}</ol>`;
