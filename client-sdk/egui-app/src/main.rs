//! The demo of egui, an app that others wrote, drawn without a window and measured by unjank. The lines that mention `unjank` or use what it
//! returned are the whole instrumentation; a test counts them. What the app did is printed as JSON at its end.

mod plan;

use std::time::Instant;

use egui::Context;
use egui_demo_lib::DemoWindows;

use crate::plan::{FRAME, Plan, Truth};

fn main() {
    let plan = Plan::from_args();
    let config = unjank::Config::new(&plan.server, "demo").app("rs.egui.demo", "0.37.0");
    let guard = unjank::init(plan.for_tests(config));
    let main_loop = unjank::MainLoop::of_this_thread();
    plan.wait_for_the_watchdog();
    let mut page = unjank::page_load("Demo", unjank::LaunchKind::Cold);
    let mut truth = Truth::new();
    let (context, mut demo) = (Context::default(), DemoWindows::default());
    for number in 0..plan.frames {
        let vsync = Instant::now();
        main_loop.begin();
        draw(&context, &mut demo, &plan, number);
        main_loop.end();
        let rendered = Instant::now();
        unjank::frame(vsync, rendered);
        page.draw();
        truth.add(number, vsync, rendered);
        std::thread::sleep(FRAME.saturating_sub(vsync.elapsed()));
    }
    truth.sent = unjank::flush(plan.patience());
    drop(guard);
    truth.print();
}

#[unjank::traced(name = "frame")]
fn draw(context: &Context, demo: &mut DemoWindows, plan: &Plan, number: u64) {
    let output = context.run_ui(plan.input(number), |ui| {
        let _span = unjank::span("ui");
        demo.ui(ui);
        if plan.overlay {
            unjank::live::show(ui.ctx());
        }
    });
    plan.block(number);
    let _span = unjank::span("tessellate");
    context.tessellate(output.shapes.clone(), output.pixels_per_point);
    output.drop_without_applying_deltas();
}
