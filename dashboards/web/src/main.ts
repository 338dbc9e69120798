import { mount } from 'svelte';
import App from './App.svelte';
import './styles/tokens.css';
import './styles/base.css';
import { startTheme } from './layout/theme.svelte';
import { startRouter } from './navigation/router.svelte';

startTheme();
startRouter();
mount(App, { target: document.getElementById('app')! });
