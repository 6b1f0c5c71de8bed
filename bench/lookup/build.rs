//! Compiles the C++ peer, if Boost's headers are there; without them it is left out by name.

fn main() {
    println!("cargo::rerun-if-changed=src/boost.cpp");
    println!("cargo::rustc-check-cfg=cfg(boost)");
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(3).file("src/boost.cpp").cargo_warnings(false);
    if build.try_compile("boost_map").is_ok() {
        println!("cargo::rustc-cfg=boost");
    } else {
        println!("cargo::warning=boost::unordered_flat_map is left out: install libboost1.81-dev");
    }
}
