import { useState } from 'preact/hooks';
import { now } from '../../../app/now.ts';
import { setQuery } from '../../../app/router.ts';
import { accountOf } from '../../../app/session.ts';
import { Dialog } from '../../../parts/dialog.tsx';
import { Form, Submit, textOf, useForm } from '../../../parts/form.tsx';
import { formatTime } from '../../../text/format.ts';
import { t } from '../../../text/t.ts';
import { dayAt, monthAt, tsOf, wallOf } from '../../../text/time.ts';
import type { Span } from './points.ts';
import { type Range, type RangeName, ranges, scaleSpan, showSpan } from './series.ts';

/** Ranges that end now, a chosen one, and how far the chart is zoomed in. */
export function Ranges({ range }: { range: Range }) {
  const [isChoosing, setIsChoosing] = useState(false);
  const choose = (name: RangeName) => setQuery({ range: name, from: '', to: '' });
  const { start, end } = range;
  return (
    <div class="ranges" role="group" aria-label={t('device.range')}>
      {range.name === null && (
        <p class="zoomed">
          {t('device.zoomed', { from: formatTime(start), to: formatTime(end) })}
          <button type="button" class="link" onClick={() => setQuery({ from: '', to: '' })}>
            {t('device.zoomOut')}
          </button>
        </p>
      )}
      {(Object.keys(ranges) as RangeName[]).map((name) => (
        <button
          key={name}
          type="button"
          class="range"
          aria-pressed={range.name === name}
          title={t(`device.range.${name}`)}
          onClick={() => choose(name)}
        >
          {name}
        </button>
      ))}
      <button type="button" class="range range-choose" onClick={() => setIsChoosing(true)}>
        {t('range.choose')}
      </button>
      {isChoosing && <ChooseRange range={range} onClose={() => setIsChoosing(false)} />}
    </div>
  );
}

/** From and to in the account's time zone, and days and months as people name them. */
function ChooseRange({ range, onClose }: { range: Range; onClose: () => void }) {
  const zone = accountOf()?.timeZone ?? 'UTC';
  const [isWrong, setIsWrong] = useState(false);
  const nowTs = now();
  // Nothing is known of the time to come: what is open would be drawn to its end.
  const show = ({ start, end }: Span) => {
    onClose();
    showSpan({ start, end: Math.min(end, nowTs) });
  };
  const form = useForm(async (values) => {
    const [start, end] = ['from', 'to'].map((name) => tsOf(textOf(values, name), zone));
    const isRight = start !== undefined && end !== undefined && end > start && start < nowTs;
    setIsWrong(!isRight);
    if (isRight) show({ start, end });
  });
  const named = [
    { label: t('range.today'), span: dayAt(nowTs, zone, 0) },
    { label: t('range.yesterday'), span: dayAt(nowTs, zone, -1) },
    { label: t('range.thisMonth'), span: monthAt(nowTs, zone, 0) },
    { label: t('range.lastMonth'), span: monthAt(nowTs, zone, -1) },
  ];
  const field = (name: 'from' | 'to', ts: number) => (
    <label class="field">
      <span>{t(`range.${name}`)}</span>
      <input type="datetime-local" name={name} required defaultValue={wallOf(ts, zone)} />
    </label>
  );
  return (
    <Dialog title={t('range.choose')} onClose={onClose}>
      <div class="choices range-named">
        {named.map(({ label, span }) => (
          <button key={label} type="button" class="button" onClick={() => show(span)}>
            {label}
          </button>
        ))}
      </div>
      <Form form={form}>
        {isWrong && (
          <p class="form-error" role="alert">
            {t('range.wrong')}
          </p>
        )}
        {field('from', range.start)}
        {field('to', range.end)}
        <p class="fine">{t('range.zone', { zone })}</p>
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={onClose}>
            {t('common.cancel')}
          </button>
          <Submit form={form}>{t('range.show')}</Submit>
        </div>
      </Form>
    </Dialog>
  );
}

/** For people without a wheel, a keyboard or a second finger. */
export function Zooms({ range }: { range: Range }) {
  return (
    <div class="zooms">
      <button
        type="button"
        class="range"
        aria-label={t('chart.zoomIn')}
        title={t('chart.zoomIn')}
        onClick={() => showSpan(scaleSpan(range, 0.5))}
      >
        +
      </button>
      <button
        type="button"
        class="range"
        aria-label={t('chart.zoomOut')}
        title={t('chart.zoomOut')}
        onClick={() => showSpan(scaleSpan(range, 2))}
      >
        −
      </button>
    </div>
  );
}
