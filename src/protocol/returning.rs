//! A place in line that outlives whoever keeps it: taken apart into what can be written down, and made anew
//! from that.

use std::time::{Duration, SystemTime};

use super::place_in_line::PlaceInLine;
use crate::keeper::{Class, Number, memory, place::Place, table::Table};

/// One of the tables in which a launch has a place.
pub struct Stood {
    /// The table.
    pub table: memory::Table,
    /// As whom it stands in line there; in none of the classes where it only keeps its number.
    pub classes: Vec<Class>,
    /// For how long it has stood there.
    pub longest: Duration,
    /// How many slots it wants there, where that is known.
    pub wants: Option<u64>,
}

impl PlaceInLine {
    /// Where it has a place in memory.
    pub fn stood(&self) -> Vec<Stood> {
        let in_memory = self.places.iter().filter_map(|place| match place {
            Place::Memory(place) => Some(place),
            Place::File(_) => None,
        });
        let stood = in_memory.map(|place| {
            let table = place.table().clone();
            let longest = self.clocks.stood(Table::Memory(table.clone()).id());
            Stood { table, classes: place.classes().to_vec(), longest, wants: place.wanted() }
        });
        stood.collect()
    }

    /// The same place as before. Where somebody else has the number by now, it is not there any more.
    pub fn again(number: Number, since: Option<SystemTime>, stood: &[Stood]) -> Self {
        let mut place = Self::default();
        place.come_as(number);
        place.since = since;
        for Stood { table, classes, longest, wants } in stood {
            let Some(mut own) = table.take_place(number) else { continue };
            own.stand(classes);
            if let Some(wants) = wants {
                own.wants(*wants);
            }
            let shared = Table::Memory(table.clone());
            place.clocks.goes_on(shared.id(), *longest, !classes.is_empty());
            place.tables.push(shared);
            place.places.push(Place::Memory(own));
        }
        place
    }
}
