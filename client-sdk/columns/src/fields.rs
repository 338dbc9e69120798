//! Lists of fields: one list makes the writer and the reader of a table.

/// Defines the table of a type: the number of each field, which is its place on the wire for good, its name and its kind. The numbers
/// ascend. A field that is added to the type and not to its list does not compile.
///
/// `keyed` before the name makes rows that can be shared. A tuple, or a type that is one value, has a pattern after its type.
macro_rules! rows {
    ($name:ident: $row:ident $(<$life:lifetime>)? { $($number:literal $field:ident: $kind:ty,)+ }) => {
        rows!(@rows $name, [$row $(<$life>)?], [$row { $($field),+ }], { $($number $field: $kind,)+ });
    };
    (keyed $name:ident: $row:ident $(<$life:lifetime>)? { $($number:literal $field:ident: $kind:ty,)+ }) => {
        rows!(@rows $name, [$row $(<$life>)?], [$row { $($field),+ }], { $($number $field: $kind,)+ });

        impl $crate::kinds::KeyRows for $name {
            fn key<'a>(row: &Self::Row<'a>, state: &mut $crate::state::Outgoing, key: &mut Vec<u8>) {
                let $row { $($field),+ } = row;
                $(<$kind as $crate::kinds::Key<'a, _>>::key($field, state, key);)+
            }
        }
    };
    ($name:ident: $row:ty = $shape:tt { $($number:literal $field:ident: $kind:ty,)+ }) => {
        rows!(@rows $name, [$row], [$shape], { $($number $field: $kind,)+ });
    };
    (@rows $name:ident, [$row:ty], [$($shape:tt)+], { $($number:literal $field:ident: $kind:ty,)+ }) => {
        #[derive(Clone)]
        pub(crate) struct $name;

        const _: () = {
            use $crate::column::{Table, tag};
            use $crate::kinds::{Kind, Layout};
            use $crate::faults::Unreadable;
            use $crate::state::{Incoming, Outgoing};

            #[derive(Clone, Default)]
            pub(crate) struct Columns {
                $($field: <$kind as Layout>::Column,)+
            }

            pub(crate) struct Cursors<'a> {
                $($field: <$kind as Layout>::Cursor<'a>,)+
            }

            impl $crate::rows::Rows for $name {
                type Row<'a> = $row;
                type Columns = Columns;
                type Cursors<'a> = Cursors<'a>;
                const FIELDS: &'static [&'static str] = &[$(stringify!($field)),+];

                #[inline]
                fn push<'a>(columns: &mut Columns, row: &Self::Row<'a>, state: &mut Outgoing) {
                    let $($shape)+ = row;
                    $(<$kind as Kind<'a, _>>::push(&mut columns.$field, $field, state);)+
                }

                fn write(columns: &mut Columns, state: &mut Outgoing, out: &mut Vec<u8>) {
                    $(<$kind as Layout>::write(&mut columns.$field, tag($number), state, out);)+
                }

                fn open<'a>(table: &Table<'a>, state: &mut Incoming<'a>) -> Result<Cursors<'a>, Unreadable> {
                    Ok(Cursors {
                        $($field: <$kind as Layout>::open(table, tag($number), state)?,)+
                    })
                }

                #[inline]
                fn next<'a>(cursors: &mut Cursors<'a>, state: &mut Incoming<'a>) -> Self::Row<'a> {
                    $(let $field = <$kind as Kind<'a, _>>::next(&mut cursors.$field, state, stringify!($field));)+
                    $($shape)+
                }

                fn is_done(cursors: &Cursors<'_>, state: &Incoming<'_>) -> bool {
                    true $(&& <$kind as Layout>::is_done(&cursors.$field, state))+
                }
            }
        };
    };
}

pub(crate) use rows;
