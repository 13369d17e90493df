// A chart of lines: a figure, a caption that states the finding, and its table behind it.
import {html, nothing, svg, type PropertyValues, type TemplateResult} from 'lit';
import uPlot from 'uplot';
import {compact} from '../core/format.ts';
import {define, View} from './view.ts';
import {table} from './table.ts';

export interface Line {
  name: string;
  /** One for each x; null where there is none. */
  values: (number | null)[];
  color: 'main' | 'before' | 'aim' | 'good' | 'bad';
  dashed?: boolean;
  filled?: boolean;
  /** Constant until the next x. */
  stepped?: boolean;
}

export interface Mark {
  x: number;
  text: string;
}

export interface Chart {
  /** What the chart shows, as a sentence. */
  finding: unknown;
  /** Its name for those who do not see it. */
  name: string;
  x: number[];
  xName: string;
  xText: (x: number) => string;
  /** Where x is written; by default where it fits. */
  ticks?: number[];
  range?: [number, number];
  lines: Line[];
  text: (value: number | null) => string;
  /** Of the y axis, where `text` is too long. */
  yText?: (value: number) => string;
  /** A level that is not passed. */
  limit?: {value: number; text: string};
  marks?: Mark[];
  height?: number;
}

const dash = [5, 4];
// Nothing is counted in parts.
const steps = Array.from({length: 13}, (_, power) => [1, 2, 5].map(n => n * 10 ** power)).flat();

class LineChart extends View {
  static override properties = {chart: {attribute: false}};
  declare chart: Chart;
  private plot: uPlot | undefined;
  private shape = '';
  private readonly dark = matchMedia('(prefers-color-scheme: dark)');
  private readonly sizes = new ResizeObserver(() => this.fit());

  override connectedCallback(): void {
    super.connectedCallback();
    this.dark.addEventListener('change', this.repaint);
    addEventListener('themechange', this.repaint);
    this.requestUpdate();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.dark.removeEventListener('change', this.repaint);
    removeEventListener('themechange', this.repaint);
    this.sizes.disconnect();
    this.plot?.destroy();
    this.plot = undefined;
  }

  private readonly repaint = () => {
    this.plot?.destroy();
    this.plot = undefined;
    this.requestUpdate();
  };

  private get frame(): HTMLElement {
    return this.querySelector<HTMLElement>('.plot')!;
  }

  private fit(): void {
    const width = this.frame.clientWidth;
    if (this.plot && width > 0 && width !== this.plot.width) {
      this.plot.setSize({width, height: this.chart.height ?? 200});
    }
  }

  private options(): uPlot.Options {
    const style = getComputedStyle(this);
    // A canvas knows no custom properties: an element tells what they come to.
    const probe = this.frame.appendChild(document.createElement('i'));
    const color = (name: string) => {
      probe.style.color = `var(--chart-${name})`;
      return getComputedStyle(probe).color;
    };
    const [faint, grid, bad, fill] = ['text', 'grid', 'bad', 'fill'].map(color) as [string, string, string, string];
    const strokes = this.chart.lines.map(line => color(line.color));
    probe.remove();
    const font = `11px ${style.fontFamily}`;
    const {lines, xText, text, yText = compact, range, limit, marks = [], ticks} = this.chart;
    const axis = {stroke: faint, font, ticks: {show: false}, grid: {stroke: grid, width: 1}};
    const draw = (u: uPlot) => {
      const {ctx} = u;
      const ratio = devicePixelRatio;
      ctx.save();
      ctx.setLineDash([]);
      ctx.textAlign = 'left';
      ctx.textBaseline = 'alphabetic';
      ctx.font = `${11 * ratio}px ${style.fontFamily}`;
      ctx.fillStyle = faint;
      ctx.strokeStyle = bad;
      ctx.lineWidth = ratio;
      if (limit) {
        const y = Math.round(u.valToPos(limit.value, 'y', true));
        ctx.beginPath();
        ctx.moveTo(u.bbox.left, y);
        ctx.lineTo(u.bbox.left + u.bbox.width, y);
        ctx.stroke();
        ctx.fillText(limit.text, u.bbox.left + 4 * ratio, y - 4 * ratio);
      }
      ctx.strokeStyle = faint;
      ctx.setLineDash([2 * ratio, 3 * ratio]);
      for (const mark of marks) {
        const x = Math.round(u.valToPos(mark.x, 'x', true));
        ctx.beginPath();
        ctx.moveTo(x, u.bbox.top);
        ctx.lineTo(x, u.bbox.top + u.bbox.height);
        ctx.stroke();
        ctx.fillText('✎', x + 3 * ratio, u.bbox.top + 11 * ratio);
      }
      ctx.restore();
    };
    return {
      width: Math.max(100, this.frame.clientWidth), height: this.chart.height ?? 200,
      padding: [10, ticks && xText(ticks.at(-1)!).length > 6 ? 40 : 18, 0, 0],  // the last label is centred
      legend: {show: false},
      cursor: {y: false, drag: {x: false, y: false}, points: {size: 6}},
      scales: {
        x: {time: false, ...range ? {range: () => range} : {}},
        y: {range: (_, __, most) => [0, Math.max(limit ? limit.value * 1.12 : 0, (most ?? 0) * 1.08, 4)]},
      },
      axes: [
        {...axis, grid: {show: false}, size: 26, values: (_, values) => values.map(xText), ...ticks ? {splits: () => ticks} : {space: 70}},
        {...axis, size: 46, incrs: steps, values: (_, values) => values.map(value => yText(value))},
      ],
      series: [
        {label: this.chart.xName},
        ...lines.map((line, i): uPlot.Series => ({
          label: line.name, stroke: strokes[i]!, width: line.color === 'main' ? 2 : 1.5, points: {show: false}, spanGaps: true,
          ...line.dashed ? {dash} : {}, ...line.filled ? {fill} : {},
          ...line.stepped ? {paths: uPlot.paths.stepped!({align: 1})} : {},
          value: (_, value) => text(value),
        })),
      ],
      hooks: {draw: [draw], setCursor: [u => this.tell(u)]},
    };
  }

  // What stands at the pointer.
  private tell(u: uPlot): void {
    const line = this.querySelector<HTMLElement>('.at-pointer')!;
    const i = u.cursor.idx;
    line.textContent = i == null ? '' :
      `${this.chart.xText(this.chart.x[i]!)}: ${this.chart.lines.map(one => `${one.name} ${this.chart.text(one.values[i] ?? null)}`).join(' · ')}`;
  }

  protected override updated(_: PropertyValues): void {
    const data = [this.chart.x, ...this.chart.lines.map(line => line.values)] as uPlot.AlignedData;
    const {lines, limit, marks, ticks} = this.chart;
    const shape = JSON.stringify([lines.map(({name, color, dashed, stepped}) => [name, color, dashed, stepped]), limit, marks, ticks]);
    if (this.plot && shape === this.shape) {
      this.plot.setData(data);
      return;
    }
    this.plot?.destroy();
    this.shape = shape;
    this.plot = new uPlot(this.options(), data, this.frame);
    // Its table says the same.
    this.frame.querySelector('canvas')?.setAttribute('aria-hidden', 'true');
    this.sizes.observe(this.frame);
  }

  protected override render(): TemplateResult {
    const {finding, name, lines, x, xName, xText, text, marks = []} = this.chart;
    return html`<figure class="chart"><figcaption>${finding}</figcaption>
      <div class="plot"></div>
      <p class="legend">${lines.map(line => html`<span><i class="key ${line.color} ${line.dashed ? 'dashed' : ''}" aria-hidden="true"></i>${line.name}</span>`)}<span class="at-pointer" aria-hidden="true"></span></p>
      <details class="behind"><summary>Table</summary>${table({
        caption: name,
        rows: x.map((_, i) => i),
        limit: 200,
        columns: [{name: xName, cell: i => xText(x[i]!)}, ...lines.map(line => ({name: line.name, number: true, cell: (i: number) => text(line.values[i] ?? null)}))],
      })}${marks.length ? html`<ul>${marks.map(mark => html`<li>${xText(mark.x)}: ${mark.text}</li>`)}</ul>` : nothing}</details></figure>`;
  }
}

define('line-chart', LineChart);

export const chart = (of: Chart): TemplateResult => html`<line-chart .chart=${of}></line-chart>`;

/** A small bar: a part of a whole, with a marker of where it should be. */
export const bar = (part: number | null, aim: number | null = null, kind = ''): TemplateResult => {
  const x = (value: number) => `${(Math.min(1, Math.max(0, value)) * 100).toFixed(1)}%`;
  return html`<svg class="bar ${kind}" aria-hidden="true"><rect class="track" width="100%" height="100%" rx="3"></rect>
    <rect class="done" width=${x(part ?? 0)} height="100%" rx="3"></rect>
    ${aim == null ? nothing : svg`<line class="mark" x1=${x(aim)} x2=${x(aim)} y1="0" y2="100%"></line>`}</svg>`;
};
