import { useQuery } from '../../api/cache.ts';
import { nameOfSense } from '../../api/devices.ts';
import type { ListedAlarm, Sense } from '../../api/types.ts';
import { now } from '../../app/now.ts';
import { queryOf } from '../../app/router.ts';
import { accountOf } from '../../app/session.ts';
import { BackLink, Link } from '../../parts/link.tsx';
import { Answered } from '../../parts/panel.tsx';
import { formatDuration, formatNumber } from '../../text/format.ts';
import { record as de } from '../../text/de/record.ts';
import { record as en } from '../../text/en/record.ts';
import { locale, t, textsOf } from '../../text/t.ts';
import { dayOf, monthAt, sayTime, tsOf } from '../../text/time.ts';
import { aboutOf, beganOf, sayUnknownEnd } from '../alarms/about.ts';
import type { Span } from '../device/chart/points.ts';
import { loadMonth, type Month, monthOf } from './record.ts';

const text = textsOf(en, de);

const zoneOf = () => accountOf()?.timeZone ?? 'UTC';
/** As the URL has it: 2026-10. */
const idOf = ({ start }: Span) => dayOf(start, zoneOf()).slice(0, 7);

/** A month of a device, made for paper: what it measured each day, its alarms, and a line to sign. */
export function RecordPage({ uuid }: { uuid: string }) {
  const zone = zoneOf();
  const month = monthOf(queryOf('month'), now(), zone);
  const id = idOf(month);
  const query = useQuery(`record/${uuid}/${id}`, (signal) =>
    loadMonth(uuid, month, { zone, nowTs: now() }, signal),
  );
  const steps = [-1, 1].map((by) => monthAt((month.start + month.end) / 2, zone, by));
  return (
    <article class="record">
      <div class="record-tools">
        <BackLink to={`devices/${uuid}`}>{t('watch.toDevice')}</BackLink>
        {steps
          .filter(({ start }) => start < now())
          .map((each) => (
            <Link key={each.start} to={`record/${uuid}?month=${idOf(each)}`} class="button">
              {monthName(each)}
            </Link>
          ))}
        <button type="button" class="button button-main" onClick={() => print()}>
          {text('record.print')}
        </button>
      </div>
      <Answered query={query} lines={8}>
        {(data) => <Sheet data={data} month={month} />}
      </Answered>
    </article>
  );
}

const monthName = ({ start }: Span) =>
  new Intl.DateTimeFormat(locale(), { timeZone: zoneOf(), month: 'long', year: 'numeric' }).format(
    start,
  );

function Sheet({ data, month }: { data: Month; month: Span }) {
  const { name, serial, span, senses, readTs } = data;
  const account = accountOf();
  const facts = [
    [text('record.device'), [name || t('fleet.unnamed'), serial].filter(Boolean).join(', ')],
    [t('nav.account'), account?.name || (account?.email ?? '')],
    [text('record.period'), `${at(span.start)} – ${at(span.end)} (${zoneOf()})`],
    [text('record.asOf'), at(readTs)],
  ];
  return (
    <>
      <h1>{text('record.title', { name: name || t('fleet.unnamed'), month: monthName(month) })}</h1>
      <dl class="record-facts">
        {facts.map(([term, fact]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{fact}</dd>
          </div>
        ))}
      </dl>
      {span.end < month.end && <p class="notice">{text('record.notOver')}</p>}
      <Excursions {...data} />
      {senses.length === 0 && <p>{text('record.nothing')}</p>}
      {groupsOf(senses).map((group) => (
        <Days key={group[0]?.sense.sId} {...data} senses={group} />
      ))}
      <Gaps {...data} />
      <Signature />
    </>
  );
}

/** As many senses as are side by side on a page. */
const abreast = 3;
const groupsOf = <T,>(all: readonly T[]): T[][] =>
  Array.from({ length: Math.ceil(all.length / abreast) }, (_, place) =>
    all.slice(place * abreast, (place + 1) * abreast),
  );

/** A time with its date, which on paper is never "today". */
const at = (ts: number) => sayTime(ts, { locale: locale(), timeZone: zoneOf(), nowTs: 0 });

const number = (value: number, { decimals }: Sense) => formatNumber(value, decimals);

function Days({ days, senses, known }: Pick<Month, 'days' | 'senses' | 'known'>) {
  const firstDay = dayOf(known.start, zoneOf());
  return (
    <div class="record-scroll" tabIndex={0} role="region" aria-label={text('record.day')}>
      <table class="table record-days">
        <thead>
          <tr>
            <th scope="col" rowSpan={2}>
              {text('record.day')}
            </th>
            {senses.map(({ sense }) => (
              <th key={sense.sId} scope="colgroup" colSpan={3}>
                {nameOfSense(sense.sId, sense)}
                {sense.unit && `, ${sense.unit}`}
              </th>
            ))}
          </tr>
          <tr>
            {senses.flatMap(({ sense: { sId } }) =>
              (['least', 'mean', 'most'] as const).map((which) => (
                <th key={`${sId}/${which}`} scope="col">
                  {t(`device.${which}`)}
                </th>
              )),
            )}
          </tr>
        </thead>
        <tbody>
          {days.map((day) => (
            <tr key={day}>
              <th scope="row">{dayName(day)}</th>
              {senses.map((each) => (
                <Numbers
                  key={each.sense.sId}
                  sense={each.sense}
                  stats={each.days.get(day)}
                  isBefore={day < firstDay}
                />
              ))}
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">{text('record.whole')}</th>
            {senses.map(({ sense, whole }) => (
              <Numbers key={sense.sId} sense={sense} stats={whole} />
            ))}
          </tr>
        </tfoot>
      </table>
    </div>
  );
}

const dayName = (day: string) =>
  new Intl.DateTimeFormat(locale(), {
    timeZone: 'UTC',
    weekday: 'short',
    day: 'numeric',
    month: 'short',
  }).format(tsOf(`${day}T12:00`, 'UTC'));

type NumbersProps = {
  sense: Sense;
  stats: { min: number; avg: number; max: number } | undefined;
  /** The day is from before there was a device. */
  isBefore?: boolean;
};

function Numbers({ sense, stats, isBefore = false }: NumbersProps) {
  if (!stats) return <td colSpan={3}>{text(isBefore ? 'record.notYet' : 'record.noValues')}</td>;
  return (
    <>
      <td>{number(stats.min, sense)}</td>
      <td>{number(stats.avg, sense)}</td>
      <td>{number(stats.max, sense)}</td>
    </>
  );
}

function Excursions({ alarms, isCut, senses }: Month) {
  return (
    <section class="record-part">
      <h2>{text('record.alarms')}</h2>
      {alarms.length === 0 ? (
        !isCut && <p>{text('record.noAlarms')}</p>
      ) : (
        <div class="record-scroll" tabIndex={0} role="region" aria-label={text('record.alarms')}>
          <table class="table record-alarms">
            <thead>
              <tr>
                {(['alarm', 'time', 'extreme', 'handled'] as const).map((column) => (
                  <th key={column} scope="col">
                    {text(`record.${column}`)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {alarms.map((alarm) => (
                <Excursion
                  key={alarm.alarmId}
                  alarm={alarm}
                  shown={senses.map(({ sense }) => sense)}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {isCut && <p class="fine">{text('record.cut')}</p>}
    </section>
  );
}

function Excursion({ alarm, shown }: { alarm: ListedAlarm; shown: readonly Sense[] }) {
  const { eventName, acknowledgedTs, notes, closedTs, closedBy } = alarm;
  const { condition, peak } = aboutOf(alarm, shown);
  const { overTs } = alarm;
  return (
    <tr>
      <td>
        <strong>{eventName || t('chart.alarm')}</strong>
        <p>{condition}</p>
      </td>
      <td>
        {at(beganOf(alarm))} –{' '}
        {overTs === null
          ? closedTs === null
            ? text('record.open')
            : sayUnknownEnd(alarm)
          : `${at(overTs)} (${formatDuration(overTs - beganOf(alarm))})`}
      </td>
      <td>{peak === '' ? '–' : peak}</td>
      <td>
        {acknowledgedTs === null
          ? text('record.notAcknowledged')
          : text('record.acknowledged', { time: at(acknowledgedTs) })}
        {closedBy === 'person' && closedTs !== null && (
          <p>{text('record.closed', { time: at(closedTs) })}</p>
        )}
        {notes.map(({ ts, text: note }) => (
          <p key={ts}>{t('alarms.noted', { time: at(ts), text: note })}</p>
        ))}
      </td>
    </tr>
  );
}

type GapsProps = Pick<Month, 'senses' | 'silent' | 'known' | 'span' | 'addedTs'>;

function Gaps({ senses, silent, known, span, addedTs }: GapsProps) {
  const isWhole = silent.length === 0 && senses.every(({ gaps }) => gaps.length === 0);
  const all = known.end > known.start ? silent.map((sense) => ({ sense, gaps: [known] })) : [];
  return (
    <section class="record-part">
      <h2>{text('record.gaps')}</h2>
      {addedTs !== null && addedTs > span.start && (
        <p>{text('record.added', { time: at(addedTs) })}</p>
      )}
      {isWhole && senses.length > 0 && <p>{text('record.noGaps')}</p>}
      {[...senses, ...all]
        .filter(({ gaps }) => gaps.length > 0)
        .map(({ sense, gaps }) => (
          <div key={sense.sId}>
            <h3>{nameOfSense(sense.sId, sense)}</h3>
            <ul>
              {gaps.map(({ start, end }) => (
                <li key={start}>
                  {at(start)} – {at(end)} ({formatDuration(end - start)})
                </li>
              ))}
            </ul>
          </div>
        ))}
      <p class="fine">{text('record.gapsHint')}</p>
    </section>
  );
}

const Signature = () => (
  <dl class="record-signature">
    {(['checked', 'date', 'signature'] as const).map((what) => (
      <div key={what}>
        <dd />
        <dt>{text(`record.${what}`)}</dt>
      </div>
    ))}
  </dl>
);
