// Figures for people.

const locale = 'en-GB';
const whole = new Intl.NumberFormat(locale, {maximumFractionDigits: 0});
const short = new Intl.NumberFormat(locale, {notation: 'compact', maximumFractionDigits: 1});
const one = new Intl.NumberFormat(locale, {minimumFractionDigits: 1, maximumFractionDigits: 1});
const two = new Intl.NumberFormat(locale, {minimumFractionDigits: 2, maximumFractionDigits: 2});

const fine = new Intl.NumberFormat(locale, {minimumFractionDigits: 2, maximumFractionDigits: 4});

export const none = '–';

export const count = (value: number | null | undefined): string => value == null ? none : whole.format(value);

/** For axes and tight places. */
export const compact = (value: number): string => Math.abs(value) < 10_000 ? whole.format(value) : short.format(value);

export const rate = (value: number | null | undefined): string => value == null ? none : value < 10 ? one.format(value) : whole.format(value);

export const share = (value: number | null | undefined, digits = 1): string =>
  value == null || !Number.isFinite(value) ? none : `${(digits === 2 ? two : one).format(value * 100)} %`;

export const ratio = (part: number, all: number): number | null => all > 0 ? part / all : null;

export const money = (cents: number | null | undefined, currency?: string | null): string =>
  cents == null ? none : `${two.format(cents / 100)}${currency ? ` ${currency}` : ''}`;

/** Of one event: a thousandth of a price per thousand is below a cent. */
export const price = (cents: number): string => fine.format(cents / 100);

/** How much more than before: "+12 %". */
export const change = (now: number | null | undefined, before: number | null | undefined): string => {
  if (now == null || !before) {
    return '';
  }
  const more = Math.round((now / before - 1) * 100);
  return `${more > 0 ? '+' : more < 0 ? '−' : '±'}${whole.format(Math.abs(more))} %`;
};

export const bytes = (value: number): string => {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, value)) / 10));
  return `${power === 0 ? whole.format(value) : one.format(value / 1024 ** power)} ${units[power]}`;
};

/** A span of seconds. */
export const span = (seconds: number): string => {
  const s = Math.max(0, Math.round(seconds));
  return s < 120 ? `${s} s` : s < 7200 ? `${Math.floor(s / 60)} min` : s < 172_800 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86_400)} days`;
};

const clock = new Intl.DateTimeFormat(locale, {hour: '2-digit', minute: '2-digit', second: '2-digit'});
const moment = new Intl.DateTimeFormat(locale, {day: 'numeric', month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit'});
const date = new Intl.DateTimeFormat(locale, {day: 'numeric', month: 'short', year: 'numeric'});

export const time = (ms: number): string => clock.format(ms);
export const when = (at: string | number): string => moment.format(new Date(at));
export const day = (at: string | number): string => date.format(new Date(at));

export const plural = (n: number, word: string, many = `${word}s`): string => `${count(n)} ${n === 1 ? word : many}`;

/** Of the browser: the days of the page are those of who looks. */
export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** YYYY-MM-DD of a moment, in a time zone. */
export const dayIn = (ms: number, timeZone = zone): string => new Intl.DateTimeFormat('en-CA', {timeZone, year: 'numeric', month: '2-digit', day: '2-digit'}).format(ms);

/** Hours since midnight in a time zone, with their fraction. */
export const hourIn = (ms: number, timeZone = zone): number => {
  const parts = new Intl.DateTimeFormat('en-GB', {timeZone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23'}).formatToParts(ms);
  const of = (type: string) => Number(parts.find(part => part.type === type)?.value ?? 0);
  return of('hour') + of('minute') / 60;
};
