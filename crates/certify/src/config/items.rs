//! The table of items: their names, and the field that each fills.

use super::histogram::SizeHistogram;
use super::legacy::LegacyItem;
use super::test_options::{self, ReadValue};
use super::{Index, Storage, TestOptions};

/// Who knows an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemFamily {
    /// ACT 6.
    Act,
    /// The paper on sizing, and what ACT had between 4.0 and 6.3.
    Paper,
    /// Only we.
    Own,
    /// ACT before 6.
    Legacy,
}

/// One item.
pub(super) struct Item<T: 'static> {
    pub(super) name: &'static str,
    pub(super) family: ItemFamily,
    pub(super) value: ItemValue<T>,
}

/// What an item's value is and where it goes.
pub(super) enum ItemValue<T: 'static> {
    Devices,
    Count(fn(&mut T) -> &mut u32),
    Flag(fn(&mut T) -> &mut bool),
    Sizes(fn(&mut T) -> &mut Option<SizeHistogram>),
    Test(ReadValue),
    Legacy(LegacyItem),
}

/// What both testers' configurations have in common.
pub(super) trait Subject: Default + Clone + 'static {
    /// Items that ACT 6 knows.
    const ACT_ITEMS: &'static [Item<Self>];
    /// Items of the paper.
    const PAPER_ITEMS: &'static [Item<Self>];
    /// ACT's buffer for a line, without its final NUL.
    const PIECE_BYTES: usize;
    const DEVICES_MAX: usize;
    /// The items of the other kind of configuration, and what to do with such a file.
    const OTHERS: (ItemNames, &'static str);

    fn devices(&mut self) -> &mut Vec<String>;
    fn test(&mut self) -> &mut TestOptions;
    fn legacy(&mut self, item: LegacyItem, value: u32);
    /// What an item of old says that no other item does.
    fn legacy_value(&self, item: LegacyItem) -> Option<u32>;

    /// The item called `name`, of any family.
    fn item(name: &str) -> Option<Item<Self>> {
        let listed = Self::ACT_ITEMS.iter().chain(Self::PAPER_ITEMS);
        if let Some(item) = listed.into_iter().find(|item| item.name == name) {
            return Some(*item);
        }
        let own = test_options::ITEMS.iter().find(|(own, _)| *own == name);
        if let Some((name, read)) = own {
            return Some(Item { name, family: ItemFamily::Own, value: ItemValue::Test(*read) });
        }
        let (name, item) = super::legacy::ITEMS.iter().find(|(legacy, _)| *legacy == name)?;
        Some(Item { name, family: ItemFamily::Legacy, value: ItemValue::Legacy(*item) })
    }
}

/// Lists items with their families.
pub(super) type ItemNames = fn() -> Vec<(&'static str, ItemFamily)>;

/// Every item of a storage configuration.
pub fn storage_item_names() -> Vec<(&'static str, ItemFamily)> {
    names::<Storage>()
}

/// Every item of an index configuration.
pub fn index_item_names() -> Vec<(&'static str, ItemFamily)> {
    names::<Index>()
}

fn names<T: Subject>() -> Vec<(&'static str, ItemFamily)> {
    let listed = T::ACT_ITEMS.iter().chain(T::PAPER_ITEMS).map(|item| (item.name, item.family));
    let own = test_options::ITEMS.iter().map(|(name, _)| (*name, ItemFamily::Own));
    let legacy = super::legacy::ITEMS.iter().map(|(name, _)| (*name, ItemFamily::Legacy));
    listed.chain(own).chain(legacy).collect()
}

impl<T> Clone for Item<T> {
    fn clone(&self) -> Item<T> {
        *self
    }
}

impl<T> Copy for Item<T> {}

impl<T> Clone for ItemValue<T> {
    fn clone(&self) -> ItemValue<T> {
        *self
    }
}

impl<T> Copy for ItemValue<T> {}

impl<T> Item<T> {
    const fn act(name: &'static str, value: ItemValue<T>) -> Item<T> {
        Item { name, family: ItemFamily::Act, value }
    }

    const fn paper(name: &'static str, value: ItemValue<T>) -> Item<T> {
        Item { name, family: ItemFamily::Paper, value }
    }
}

use ItemValue::{Count, Devices, Flag, Sizes};

impl Subject for Storage {
    const ACT_ITEMS: &'static [Item<Storage>] = &[
        Item::act("device-names", Devices),
        Item::act("file-size-mbytes", Count(|it| &mut it.file_size_mbytes)),
        Item::act("service-threads", Count(|it| &mut it.service_threads)),
        Item::act("test-duration-sec", Count(|it| &mut it.test_duration_sec)),
        Item::act("report-interval-sec", Count(|it| &mut it.report_interval_sec)),
        Item::act("microsecond-histograms", Flag(|it| &mut it.microsecond_histograms)),
        Item::act("read-reqs-per-sec", Count(|it| &mut it.read_reqs_per_sec)),
        Item::act("write-reqs-per-sec", Count(|it| &mut it.write_reqs_per_sec)),
        Item::act("record-bytes", Count(|it| &mut it.record_bytes)),
        Item::act("record-bytes-range-max", Count(|it| &mut it.record_bytes_range_max)),
        Item::act("large-block-op-kbytes", Count(|it| &mut it.large_block_op_kbytes)),
        Item::act("replication-factor", Count(|it| &mut it.replication_factor)),
        Item::act("update-pct", Count(|it| &mut it.update_pct)),
        Item::act("defrag-lwm-pct", Count(|it| &mut it.defrag_lwm_pct)),
        Item::act("no-defrag-reads", Flag(|it| &mut it.no_defrag_reads)),
        Item::act("compress-pct", Count(|it| &mut it.compress_pct)),
        Item::act("disable-odsync", Flag(|it| &mut it.disable_odsync)),
        Item::act("commit-to-device", Flag(|it| &mut it.commit_to_device)),
        Item::act("tomb-raider", Flag(|it| &mut it.tomb_raider)),
        Item::act("tomb-raider-sleep-usec", Count(|it| &mut it.tomb_raider_sleep_usec)),
        Item::act("max-lag-sec", Count(|it| &mut it.max_lag_sec)),
    ];
    const PAPER_ITEMS: &'static [Item<Storage>] = &[
        Item::paper("commit-min-bytes", Count(|it| &mut it.commit_min_bytes)),
        Item::paper("storage-read-histogram", Sizes(|it| &mut it.paper.read_histogram)),
        Item::paper("storage-write-histogram", Sizes(|it| &mut it.paper.write_histogram)),
        Item::paper("direct-frees", Count(|it| &mut it.paper.direct_frees)),
        Item::paper("total-lbw-per-sec", Count(|it| &mut it.paper.total_lbw_per_sec)),
        Item::paper("lbr-req-offset", Count(|it| &mut it.paper.lbr_req_offset)),
        Item::paper("lbw-req-offset", Count(|it| &mut it.paper.lbw_req_offset)),
        Item::paper("read-size-offset", Count(|it| &mut it.paper.read_size_offset)),
        Item::paper("write-size-offset", Count(|it| &mut it.paper.write_size_offset)),
    ];
    const PIECE_BYTES: usize = 4095;
    const DEVICES_MAX: usize = 128;
    const OTHERS: (ItemNames, &'static str) = (
        index_item_names,
        "it belongs to a configuration of index devices; use `act index`, or `--index`",
    );

    fn devices(&mut self) -> &mut Vec<String> {
        &mut self.device_names
    }

    fn test(&mut self) -> &mut TestOptions {
        &mut self.test
    }

    fn legacy(&mut self, item: LegacyItem, value: u32) {
        match item {
            LegacyItem::LargeBlockOps => self.large_block_ops_per_sec = value,
            LegacyItem::ReadBlocks => self.record_bytes = value.saturating_mul(512),
            _ => {}
        }
    }

    fn legacy_value(&self, item: LegacyItem) -> Option<u32> {
        let given = self.large_block_ops_per_sec;
        (item == LegacyItem::LargeBlockOps && given != 0).then_some(given)
    }
}

impl Subject for Index {
    const ACT_ITEMS: &'static [Item<Index>] = &[
        Item::act("device-names", Devices),
        Item::act("file-size-mbytes", Count(|it| &mut it.file_size_mbytes)),
        Item::act("service-threads", Count(|it| &mut it.service_threads)),
        Item::act("cache-threads", Count(|it| &mut it.cache_threads)),
        Item::act("test-duration-sec", Count(|it| &mut it.test_duration_sec)),
        Item::act("report-interval-sec", Count(|it| &mut it.report_interval_sec)),
        Item::act("microsecond-histograms", Flag(|it| &mut it.microsecond_histograms)),
        Item::act("read-reqs-per-sec", Count(|it| &mut it.read_reqs_per_sec)),
        Item::act("write-reqs-per-sec", Count(|it| &mut it.write_reqs_per_sec)),
        Item::act("replication-factor", Count(|it| &mut it.replication_factor)),
        Item::act("defrag-lwm-pct", Count(|it| &mut it.defrag_lwm_pct)),
        Item::act("disable-odsync", Flag(|it| &mut it.disable_odsync)),
        Item::act("max-lag-sec", Count(|it| &mut it.max_lag_sec)),
    ];
    const PAPER_ITEMS: &'static [Item<Index>] = &[];
    const PIECE_BYTES: usize = 1023;
    const DEVICES_MAX: usize = 16;
    const OTHERS: (ItemNames, &'static str) = (
        storage_item_names,
        "it belongs to a configuration of data devices; use `act storage`, or leave `--index` out",
    );

    fn devices(&mut self) -> &mut Vec<String> {
        &mut self.device_names
    }

    fn test(&mut self) -> &mut TestOptions {
        &mut self.test
    }

    fn legacy(&mut self, item: LegacyItem, value: u32) {
        if item == LegacyItem::CacheThreads {
            self.cache_threads = value;
        }
    }

    fn legacy_value(&self, _: LegacyItem) -> Option<u32> {
        None
    }
}
