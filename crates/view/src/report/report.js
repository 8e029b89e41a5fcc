// Adds to a page that is complete without it: buttons that copy, and in each timeline a
// cursor with values and a zoom. Reads the data beside the charts and sends nothing anywhere.
(() => {
  'use strict';
  const SVG = 'http://www.w3.org/2000/svg';
  const WIDTH = 1000;
  // A drag shorter than this many pixels is a click; a mark this near is the cursor's.
  const NEAR = 6;
  // Looks are sparse in old records: a value counts for this many buckets around it.
  const REACH = 20;

  document.documentElement.classList.add('js');

  for (const button of document.querySelectorAll('button.copy')) {
    button.addEventListener('click', async () => {
      const from = document.getElementById(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(from.textContent);
        button.textContent = 'Copied';
      } catch {
        getSelection().selectAllChildren(from);
        button.textContent = 'Press Ctrl-C';
      }
      setTimeout(() => { button.textContent = 'Copy'; }, 2000);
    });
  }

  function bytes(count) {
    const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
    let unit = 0;
    while (count >= 999.5 && unit < units.length - 1) { count /= 1000; unit += 1; }
    const tenths = unit > 2 ? count < 99.95 : unit > 0 && count < 9.95;
    return `${tenths ? Math.round(count * 10) / 10 : Math.round(count)} ${units[unit]}`;
  }

  const said = {
    'bytes': bytes,
    'bytes/s': (value) => `${bytes(value)}/s`,
    'share': (value) => `${Math.round(value * 100)} %`,
    'celsius': (value) => `${Math.round(value)} °C`,
    'watts': (value) => `${Math.round(value)} W`,
    '/s': (value) => `${value < 9.95 ? value.toFixed(1) : Math.round(value)}/s`,
  };

  function duration(seconds) {
    if (seconds < 9.95) return seconds === 0 ? '0 s' : `${seconds.toFixed(1)} s`;
    let whole = Math.round(seconds);
    if (whole < 60) return `${whole} s`;
    if (whole >= 3600) whole = Math.round(whole / 60) * 60;
    const pair = (large, unit, small, rest) =>
      small === 0 ? `${large} ${unit}` : `${large} ${unit} ${String(small).padStart(2, '0')} ${rest}`;
    if (whole < 3600) return pair(Math.floor(whole / 60), 'min', whole % 60, 's');
    if (whole < 172800) return pair(Math.floor(whole / 3600), 'h', Math.floor(whole / 60) % 60, 'min');
    return `${Math.floor(whole / 86400)} days ${Math.floor(whole / 3600) % 24} h`;
  }

  function timeline(root) {
    const data = JSON.parse(root.querySelector('script.data').textContent);
    const ruler = root.querySelector('.ruler');
    const readout = root.querySelector('.readout');
    const hint = readout.textContent;
    const charts = [...root.querySelectorAll('svg.chart')];
    const plots = charts.map((chart) => chart.querySelector('svg.plot'));
    const cells = charts.map((chart) => [...chart.closest('figure').querySelectorAll('.value')]);
    const rest = cells.map((row) => row.map((cell) => cell.textContent));
    const width = data.span / data.buckets;
    const narrowest = Math.min(data.span, Math.max(width * 8, 0.5));
    let from = 0;
    let to = data.span;
    let at = null;
    let drag = null;

    const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
    const x = (seconds) => seconds / data.span * WIDTH;
    const draw = (name, attributes) => {
      const element = document.createElementNS(SVG, name);
      for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
      return element;
    };
    const cursors = plots.map((plot) => plot.appendChild(draw('path', { class: 'cursor', d: '' })));
    const selects = plots.map((plot) => plot.appendChild(draw('rect', { class: 'select', height: 100, width: 0 })));

    // The picture's name is said, and no tooltip of the browser lies over the values.
    for (const chart of charts) {
      const title = chart.querySelector(':scope > title');
      chart.setAttribute('aria-label', title.textContent);
      title.remove();
    }
    ruler.setAttribute('role', 'slider');
    ruler.setAttribute('tabindex', '0');
    ruler.setAttribute('aria-valuemin', '0');
    ruler.setAttribute('aria-valuemax', String(Math.round(data.span)));
    ruler.setAttribute('aria-valuenow', '0');

    function clock(seconds) {
      let set = data.clock[0];
      for (const entry of data.clock) if (entry[0] <= seconds) set = entry;
      if (!set) return '';
      return new Date(Math.round(set[1] + seconds) * 1000).toISOString().slice(11, 19);
    }

    function ticks() {
      const most = Math.max(3, Math.floor(ruler.clientWidth / 105));
      const span = to - from;
      const step = data.steps.find((step) => span / step <= most) || span;
      ruler.replaceChildren();
      const first = Math.ceil((from + data.begin) / step - 1e-9) * step - data.begin;
      for (let tick = first; tick <= to + 1e-9; tick += step) {
        const share = (tick - from) / span;
        const place = share < 0.02 ? 'first' : share > 0.95 ? 'last' : '';
        // The first and the last lean inwards, and leave no room for one close by.
        if ((place === '' && share < 0.1) || (place === '' && share > 0.9)) continue;
        for (const [y, text] of [[14, duration(tick + data.begin)], [30, clock(tick)]]) {
          ruler.appendChild(draw('text', { class: place, x: `${share * 100}%`, y })).textContent = text;
        }
      }
    }

    function show() {
      for (const plot of plots) plot.setAttribute('viewBox', `${x(from)} 0 ${x(to - from)} 100`);
      root.classList.toggle('zoomed', to - from < data.span - 1e-9);
      root.dataset.from = from;
      root.dataset.to = to;
      ticks();
    }

    function zoom(low, high) {
      const span = clamp(high - low, narrowest, data.span);
      const middle = (low + high) / 2;
      from = clamp(middle - span / 2, 0, data.span - span);
      to = from + span;
      show();
    }

    function value(list, bucket) {
      for (let away = 0; away <= REACH; away += 1) {
        for (const place of [bucket - away, bucket + away]) {
          if (list[place] !== null && list[place] !== undefined) return place;
        }
      }
      return -1;
    }

    function told(chart, line, bucket) {
      const place = value(line.values, bucket);
      if (place < 0) return '–';
      const word = said[chart.unit];
      const text = word(line.values[place]);
      const peak = line.peaks ? word(line.peaks[place]) : text;
      return peak === text ? text : `${text} (peak ${peak})`;
    }

    function point(seconds) {
      at = seconds === null ? null : clamp(seconds, 0, data.span);
      root.classList.toggle('at', at !== null);
      readout.classList.toggle('at', at !== null);
      for (const cursor of cursors) cursor.setAttribute('d', at === null ? '' : `M${x(at)} 0V100`);
      if (at === null) {
        readout.textContent = hint;
        cells.forEach((row, chart) => row.forEach((cell, line) => { cell.textContent = rest[chart][line]; }));
        return;
      }
      const bucket = Math.min(Math.floor(at / width), data.buckets - 1);
      data.charts.forEach((chart, index) => chart.lines.forEach((line, place) => {
        const cell = cells[index] && cells[index][place];
        const part = Math.floor(bucket / data.buckets * line.values.length);
        if (cell) cell.textContent = told(chart, line, part);
      }));
      const near = (to - from) / Math.max(ruler.clientWidth, 1) * NEAR;
      const marks = data.marks.filter(([seconds]) => Math.abs(seconds - at) <= near).map(([, text]) => text);
      const moment = [clock(at), `${duration(at + data.begin)} in`].filter(Boolean).join(', ');
      readout.textContent = [moment, ...marks].join(' · ');
      ruler.setAttribute('aria-valuenow', String(Math.round(at)));
      const values = cells[0].map((cell) => `${cell.parentElement.querySelector('.name').textContent} ${cell.textContent}`);
      ruler.setAttribute('aria-valuetext', [readout.textContent, ...values].join('. '));
    }

    const seconds = (element, event) => {
      const box = element.getBoundingClientRect();
      return from + clamp((event.clientX - box.left) / box.width, 0, 1) * (to - from);
    };

    function select(low, high) {
      for (const rect of selects) {
        rect.setAttribute('x', x(Math.min(low, high)));
        rect.setAttribute('width', x(Math.abs(high - low)));
      }
    }

    for (const chart of [...charts, ruler]) {
      chart.addEventListener('pointermove', (event) => {
        point(seconds(chart, event));
        if (drag) select(drag.seconds, at);
      });
      chart.addEventListener('pointerdown', (event) => {
        // A finger moves the cursor; it zooms with the buttons.
        if (event.pointerType !== 'touch' && event.button === 0 && chart !== ruler) {
          drag = { seconds: seconds(chart, event), pixels: event.clientX };
          chart.setPointerCapture(event.pointerId);
        }
        point(seconds(chart, event));
      });
      chart.addEventListener('pointerup', (event) => {
        if (drag && Math.abs(event.clientX - drag.pixels) > NEAR) {
          const end = seconds(chart, event);
          zoom(Math.min(drag.seconds, end), Math.max(drag.seconds, end));
        }
        drag = null;
        select(0, 0);
      });
      chart.addEventListener('pointercancel', () => { drag = null; select(0, 0); });
      chart.addEventListener('pointerleave', () => { if (!drag && document.activeElement !== ruler) point(null); });
      chart.addEventListener('dblclick', () => zoom(0, data.span));
    }

    const centre = () => (at !== null && at >= from && at <= to ? at : (from + to) / 2);
    const scale = (factor) => {
      const middle = centre();
      const span = clamp((to - from) * factor, narrowest, data.span);
      const share = (middle - from) / (to - from);
      const low = clamp(middle - share * span, 0, data.span - span);
      zoom(low, low + span);
    };

    function move(next) {
      const span = to - from;
      next = clamp(next, 0, data.span);
      if (next < from) zoom(next, next + span);
      if (next > to) zoom(next - span, next);
      point(next);
    }

    root.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const step = Math.max(width, (to - from) / 200) * (event.shiftKey ? 10 : 1);
      const here = at === null ? from : at;
      switch (event.key) {
        case 'ArrowLeft': case 'ArrowDown': move(here - step); break;
        case 'ArrowRight': case 'ArrowUp': move(at === null ? from : here + step); break;
        case 'Home': move(0); break;
        case 'End': move(data.span); break;
        case '+': case '=': scale(0.5); break;
        case '-': case '_': scale(2); break;
        case 'Escape': zoom(0, data.span); point(null); break;
        default: return;
      }
      event.preventDefault();
    });
    ruler.addEventListener('blur', () => point(null));
    root.querySelector('button.in').addEventListener('click', () => scale(0.5));
    root.querySelector('button.out').addEventListener('click', () => scale(2));
    root.querySelector('button.all').addEventListener('click', () => zoom(0, data.span));
    addEventListener('resize', ticks);
    addEventListener('beforeprint', () => { zoom(0, data.span); point(null); });
    show();
  }

  for (const root of document.querySelectorAll('.timeline')) timeline(root);
})();
