// Every chart with made-up data, to view charts without a server.
import { mount } from 'svelte';
import '../../src/styles/tokens.css';
import '../../src/styles/base.css';
import { startTheme } from '../../src/layout/theme.svelte';
import { startRouter } from '../../src/navigation/router.svelte';
import Gallery from './Gallery.svelte';

startTheme();
startRouter();
mount(Gallery, { target: document.getElementById('app')! });
