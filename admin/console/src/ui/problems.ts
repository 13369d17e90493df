import {html, type TemplateResult} from 'lit';
import type {Problem} from '../core/problems.ts';
import {sentence} from './prose.ts';

const words = {alert: '▲ Problem', warning: '● Attention'};

export const problemList = (list: Problem[], fine: string): TemplateResult => html`<ul class="problems">${list.length
  ? list.map(({level, what, remedy, link}) => html`<li class=${level}><span class="kind">${words[level]}</span><span>${sentence(what)}</span>${link && link !== location.hash ? html`<a href=${link}>${link.startsWith('#/why') ? 'Why' : 'Details'}</a>` : html`<span></span>`}<span class="remedy">${sentence(remedy)}</span></li>`)
  : html`<li class="fine"><span aria-hidden="true">✓</span> ${fine}</li>`}</ul>`;

/** A figure with its name, and what it is compared with. */
export const tile = (name: string, value: string, compared: unknown = ''): TemplateResult =>
  html`<div class="tile"><dt>${name}</dt><dd><div class="value">${value}</div><div class="compared">${compared}</div></dd></div>`;
