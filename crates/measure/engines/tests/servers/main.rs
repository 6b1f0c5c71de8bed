//! The engines' servers and clients against the real thing: PostgreSQL and MariaDB as they are
//! installed. Where one is missing its tests fail with the line that says what to install.

mod attach;
mod attached;
mod dbmbench;
mod embedded;
mod instrumented;
mod load;
mod mariadb;
mod order_entry;
mod postgres;
mod private;
mod read_only;
mod shared;
mod strangers;
mod sysbench;
mod tls;
mod tpch;
