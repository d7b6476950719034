import { useQuery } from '../../api/cache.ts';
import { listRejections } from '../../api/devices.ts';
import { Answered, Empty } from '../../parts/panel.tsx';
import { Rejections } from '../../parts/rejections.tsx';
import { t } from '../../text/t.ts';
import type { TabProps } from './tab-props.ts';

const everyMs = 5_000;

/** What the device sent that was refused. */
export function RejectionsTab({ uuid }: TabProps) {
  const query = useQuery(`rejections/${uuid}`, (signal) => listRejections(uuid, signal), {
    everyMs,
  });
  return (
    <Answered query={query}>
      {(rejections) =>
        rejections.length === 0 ? (
          <Empty
            icon="check"
            title={t('device.noRejections')}
            hint={t('device.noRejectionsHint')}
          />
        ) : (
          <Rejections rejections={rejections} />
        )
      }
    </Answered>
  );
}
