import { mount } from 'svelte';
import App from './App.svelte';
import './styles/tokens.css';
import './styles/base.css';
import { startZone } from './format/zone.svelte';
import { startTheme } from './layout/theme.svelte';
import { startRouter } from './navigation/router.svelte';

startTheme();
startZone();
startRouter();
mount(App, { target: document.getElementById('app')! });
