//! Tests the built-in rules on invented stacks, in the formats that the platforms print.

use super::{Class, Rules, parse_text};

fn class(text: &str) -> Class {
    Rules::built_in().classify(&parse_text(text).unwrap())
}

fn title(text: &str) -> String {
    class(text).title
}

#[test]
fn every_built_in_rule_can_match() {
    assert_eq!(Rules::built_in().warnings(), Vec::<String>::new());
    assert!(Rules::built_in().assumes_in_app());
}

/// Rules see the reduced names of functions.
#[test]
fn no_built_in_rule_names_a_type_that_names_lose() {
    let rules = include_str!("built_in.toml");
    for lost in ["&mut ", "*mut ", "*const ", "<impl ", "::<"] {
        assert!(!rules.contains(lost), "{lost}");
    }
}

#[test]
fn the_rules_of_a_file_may_include_the_built_in_rules() {
    let file =
        "version = 3\nbuilt_in = true\n[[rule]]\nmatch = \"com.example.\"\nmeans = \"in_app\"\n";
    let rules = Rules::parse(file).unwrap();
    assert_eq!(
        (rules.version(), rules.len(), rules.assumes_in_app()),
        (3, Rules::built_in().len() + 1, false)
    );
    let stack = parse_text(
        "at com.google.gson.Gson.toJson(Gson.java:1)\nat com.lib.Api.send(Api.java:1)\nat com.example.Cart.pay(Cart.kt:1)",
    );
    assert_eq!(
        rules.classify(&stack.unwrap()).title,
        "JSON on main thread in Cart.pay"
    );
    assert_eq!(rules.warnings(), Vec::<String>::new());
}

#[test]
fn android_stacks_are_classified() {
    let waiting = "\"main\" prio=5 tid=1 Waiting\n  at java.lang.Object.wait(Native method)\n  - waiting on <0x0b>\n\
        \x20 at com.example.Sync.await(Sync.kt:4)\n  at android.os.Handler.dispatchMessage(Handler.java:99)\n";
    assert_eq!(title(waiting), "waiting for a lock in Sync.await");
    let binder = "at android.os.BinderProxy.transactNative(Native Method)\nat android.os.BinderProxy.transact(BinderProxy.java:584)\n\
        at android.app.IActivityManager$Stub$Proxy.getServices(IActivityManager.java:1)\nat com.example.Push$1.run(Push.kt:9)";
    assert_eq!(title(binder), "call to another process in Push.run");
    let file = "at libcore.io.Linux.writeBytes(Native Method)\nat libcore.io.IoBridge.write(IoBridge.java:1)\n\
        at java.io.FileOutputStream.write(FileOutputStream.java:1)\nat com.example.Log.flush(Log.kt:9)";
    assert_eq!(title(file), "file I/O on main thread in Log.flush");
    let network = "at libcore.io.Linux.recvfromBytes(Native Method)\nat java.net.SocketInputStream.read(S.java:1)\nat com.example.Api.get(Api.kt:9)";
    assert_eq!(title(network), "network on main thread in Api.get");
    let idle = "#00 pc 0004f9a8  /apex/com.android.runtime/lib64/bionic/libc.so (__epoll_pwait+8)\n\
        #01 pc 00018  /system/lib64/libutils.so (android::Looper::pollInner(int)+184)";
    assert!(class(idle).not_a_cause);
    let serializer = "at kotlinx.serialization.json.Json.decodeFromString(Json.kt:1)\nat com.example.Cart$$serializer.deserialize(Cart.kt:1)\n\
        at com.example.Cart$load$2.invokeSuspend(Cart.kt:7)";
    assert_eq!(
        title(serializer),
        "JSON on main thread in Cart$load.invokeSuspend"
    );
    assert_eq!(
        title("at a.b.c(SourceFile:1)\nat android.os.Looper.loop(Looper.java:1)"),
        "a.b.c"
    );
}

#[test]
fn ios_stacks_are_classified() {
    let json = "Thread 0 Crashed:\n\
        0   libsystem_kernel.dylib   0x00000001 __read_nocancel + 8\n\
        1   Foundation               0x00000002 -[NSJSONSerialization dataWithJSONObject:] + 12\n\
        2   Shop                     0x00000003 closure #1 in Cart.pay(_:) + 40 (Cart.swift:42)\n\
        3   UIKitCore                0x00000004 -[UIViewController loadView] + 12\n";
    assert_eq!(
        title(json),
        "file I/O on main thread in closure in Cart.pay(_:)"
    );
    let idle = "0   libsystem_kernel.dylib  0x01 mach_msg2_trap + 8\n1   libsystem_kernel.dylib  0x02 mach_msg + 24\n\
        2   CoreFoundation  0x03 __CFRunLoopServiceMachPort + 160\n3   Shop  0x04 main + 64\n";
    let class = class(idle);
    assert_eq!((class.not_a_cause, class.culprit.as_str()), (true, ""));
    let other_process = "0   libsystem_kernel.dylib  0x01 mach_msg2_trap + 8\n\
        1   libxpc.dylib  0x02 xpc_connection_send_message_with_reply_sync + 24\n2   Shop  0x03 -[Cart pay] + 44\n";
    assert_eq!(
        title(other_process),
        "call to another process in -[Cart pay]"
    );
    let own_module =
        "0   UIKitCore  0x01 -[UIView layout] + 8\n1   NetworkShop  0x02 Cart.pay() + 8\n";
    assert_eq!(title(own_module), "Cart.pay()");
}

#[test]
fn flutter_stacks_are_classified() {
    let text = "#0      _JsonStringifier.writeObject (dart:convert/json.dart:7:1)\n\
        #1      CartModel.save (package:shop/src/cart.dart:42:7)\n\
        #2      _InkResponseState.handleTap (package:flutter/src/material/ink_well.dart:1:1)\n";
    assert_eq!(title(text), "JSON on main thread in CartModel.save");
}

#[test]
fn react_native_stacks_are_classified() {
    let text = "onPress@app:///main.jsbundle:1:1\n_performTransitionSideEffects@app:///main.jsbundle:1:2\nbatchedUpdates$1@app:///main.jsbundle:1:3\n";
    assert_eq!(class(text).culprit, "onPress");
    let parse = "at JSON.parse (native)\nat loadCart (address at index.android.bundle:1:9)\nat batchedUpdates (address at index.android.bundle:1:9)";
    assert_eq!(title(parse), "JSON on main thread in loadCart");
}

#[test]
fn rust_and_cpp_stacks_are_classified() {
    let rust = "   0: __GI___futex_abstimed_wait_cancelable64\n   1: std::sync::condvar::Condvar::wait\n\
        \x20  2: shop::cart::Cart::pay::{{closure}}::h0123456789abcdef\n             at ./src/cart.rs:42:7\n   3: core::ops::function::FnOnce::call_once\n";
    assert_eq!(title(rust), "waiting for a lock in Cart::pay");
    let cpp = "#0  0x01 in _ZN4shop4Cart3payEi (amount=3) at cart.cpp:42\n#1  0x02 in main () at main.cpp:3\n";
    assert_eq!(class(cpp).culprit, "shop::Cart::pay");
}

#[test]
fn libraries_of_rust_apps_are_not_blamed() {
    let json = "   0: <&mut serde_json::de::Deserializer<R> as serde_core::de::Deserializer>::deserialize_struct\n\
        \x20  1: shop::cart::_::<impl serde_core::de::Deserialize for shop::cart::Cart>::deserialize\n\
        \x20  2: serde_json::de::from_str\n   3: shop::cart::load\n   4: eframe::native::run::run\n   5: shop::main\n";
    assert_eq!(title(json), "JSON on main thread in cart::load");
    // `<&mut _ as serde_core::de::Deserializer>::deserialize_struct` does not name the format.
    let unknown_format = json.replace("serde_json::de::from_str", "serde::de::value::from_str");
    assert_eq!(title(&unknown_format), "cart::load");
    let freed = "   0: __GI___libc_free\n   1: core::ptr::drop_in_place<serde_json::value::Value>\n   2: shop::cart::load\n   3: shop::main\n";
    assert_eq!(class(freed), class(json));
    // `<str>::to_lowercase`, `<[_] as core::cmp::PartialEq>::eq` and `<shop::cart::Cart as serde_core::de::Deserialize>::deserialize`
    let mangled = "   0: _ZN5alloc3str21_$LT$impl$u20$str$GT$12to_lowercase17h0123456789abcdefE\n\
        \x20  1: _ZN71_$LT$$u5b$A$u5d$$u20$as$u20$core..cmp..PartialEq$LT$$u5b$B$u5d$$GT$$GT$2eq17h0123456789abcdefE\n\
        \x20  2: _ZN4shop4cart1_74_$LT$impl$u20$serde_core..de..Deserialize$u20$for$u20$shop..cart..Cart$GT$11deserialize17h0123456789abcdefE\n\
        \x20  3: _ZN4shop4cart4load17h0123456789abcdefE\n";
    assert_eq!(class(mangled).culprit, "shop::cart::load");
    let unlisted = "   0: fast_parser::parse\n             at /home/ann/.cargo/registry/src/index-1949cf8c6b5b557f/fast_parser-0.3.1/src/lib.rs:12:9\n\
        \x20  1: core::ops::function::FnOnce::call_once\n             at /rustc/59807616e/library/core/src/ops/function.rs:250:5\n\
        \x20  2: shop::cart::load\n             at ./src/cart.rs:7:1\n";
    assert_eq!(class(unlisted).culprit, "shop::cart::load");
}
