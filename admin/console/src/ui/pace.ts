// Pace by shape, word and colour.
import {html, type TemplateResult} from 'lit';
import type {Pace} from '../core/status.ts';

export type PaceWord = 'under' | 'on' | 'over' | 'used up' | 'stopped' | 'none' | 'idle' | 'paused' | 'ended';

const shapes: Record<PaceWord, string> = {under: '▼', on: '●', over: '▲', 'used up': '■', stopped: '⏹', none: '○', idle: 'Ⅱ', paused: 'Ⅱ', ended: '□'};
const words: Record<PaceWord, string> = {under: 'under pace', on: 'on pace', over: 'over pace', 'used up': 'used up', stopped: 'stopped', none: 'no limit', idle: 'no active ad group', paused: 'paused', ended: 'ended'};

export const paceOf = (pace: Pace): PaceWord =>
  pace.exhausted ? 'used up' : pace.status === 'under_pace' ? 'under' : pace.status === 'over_pace' ? 'over' : pace.status === 'on_pace' ? 'on' : 'none';

/** Of what is delivered and what even delivery would have come to, as shares. */
export const paceOfShares = (delivered: number | null, aim: number | null): PaceWord =>
  delivered == null ? 'none' : delivered >= 1 ? 'used up' : aim == null || aim === 0 ? 'none' : delivered / aim <= 0.8 ? 'under' : delivered / aim <= 1.2 ? 'on' : 'over';

export const pace = (word: PaceWord): TemplateResult => html`<span class="pace ${word.replace(' ', '-')}"><span aria-hidden="true">${shapes[word]}</span> ${words[word]}</span>`;

export const statusChip = (status: string): TemplateResult => html`<span class="chip ${status}">${status}</span>`;
