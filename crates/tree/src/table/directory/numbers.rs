//! The numbers of a table's pages: none is given to two pages.

use super::Directory;

/// Numbers of pages that one write of the root sets apart.
const RESERVED_PAGES: u32 = 1024;

impl Directory {
    /// A number that no page has had.
    pub(crate) fn take_number(&mut self) -> u32 {
        let number = self.next_page;
        self.next_page += 1;
        number
    }

    /// Whether the root must be written before pages with the numbers taken so far are.
    pub(crate) fn lacks_numbers(&self) -> bool {
        self.next_page > self.reserved
    }

    /// Sets numbers apart; what the root then says of them.
    pub(crate) fn reserve_numbers(&mut self) -> u32 {
        self.reserved = self.next_page + RESERVED_PAGES;
        self.reserved
    }

    /// Whether numbers that are set apart were not taken.
    pub(crate) fn has_spare_numbers(&self) -> bool {
        self.reserved > self.next_page
    }

    /// Gives numbers back that are set apart and were not taken; what the root then says of them.
    pub(crate) fn give_numbers_back(&mut self) -> Option<u32> {
        let has_spare = self.has_spare_numbers();
        self.reserved = self.reserved.min(self.next_page);
        has_spare.then_some(self.reserved)
    }

    /// No number below `number` is new.
    pub(crate) fn use_from(&mut self, number: u32) {
        self.next_page = self.next_page.max(number);
        self.reserved = self.reserved.max(number);
    }
}
