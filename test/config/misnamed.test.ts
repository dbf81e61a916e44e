import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { misnamed } from '../../src/config/environment.ts'
import { allVendors, settings } from '../../src/config/settings.ts'

const own = Object.keys(settings)
const vendors = await allVendors()
const known = [...own, ...Object.values(vendors).flatMap(vendor => Object.keys(vendor.settings))]

const inEnvironment = (variables: Readonly<Record<string, string>>, useful = own) =>
  misnamed({ inFile: [], inEnvironment: variables, known, useful })
const inFile = (...names: string[]) => misnamed({ inFile: names, inEnvironment: {}, known, useful: own })

/** Names that are set where nobody has set them, by platform. */
const usual: Readonly<Record<string, string>> = {
  shells:
    '_ BASH BASH_ENV COLUMNS COLORTERM DISPLAY EDITOR ENV GROUP HISTFILE HOME HOSTNAME HOSTTYPE LANG LANGUAGE LC_ALL LC_CTYPE ' +
    'LESS LESSOPEN LINES LOGNAME LS_COLORS MACHTYPE MAIL MAILCHECK MAILPATH MANPATH OLDPWD OSTYPE PAGER PATH PORTS POST PS1 ' +
    'PWD SHELL SHLVL SSH_AUTH_SOCK SSH_CLIENT SSH_CONNECTION SSH_TTY SUDO_COMMAND SUDO_GID SUDO_UID SUDO_USER TEMP TERM ' +
    'TERM_PROGRAM TERM_PROGRAM_VERSION TMP TMPDIR TMUX TZ USER USERNAME VENDOR VISUAL WINDOWID XDG_CONFIG_HOME ' +
    'XDG_DATA_DIRS XDG_RUNTIME_DIR XDG_SESSION_ID ZDOTDIR ZSH',
  'programs everywhere':
    'ALL_PROXY CURL_CA_BUNDLE DEBUG FORCE_COLOR GIT_EDITOR HTTPS_PROXY HTTP_HOST HTTP_PROXY JAVA_HOME LD_LIBRARY_PATH ' +
    'LD_PRELOAD LOG_DIR LOG_FILE LOG_PATH NIX_SSL_CERT_FILE NODE NODE_ENV NODE_EXTRA_CA_CERTS NODE_OPTIONS NODE_PATH ' +
    'NODE_VERSION NO_COLOR NO_PROXY NVM_BIN NVM_DIR OPENSSL_CONF PGDATABASE PGHOST PGPASSWORD PGPORT PGSSLMODE PGUSER ' +
    'PNPM_HOME PYTHONPATH REQUESTS_CA_BUNDLE SSLKEYLOGFILE SSL_CERT_DIR SSL_CERT_FILE UV_THREADPOOL_SIZE VIRTUAL_ENV ' +
    'YARN_VERSION http_proxy https_proxy no_proxy',
  npm:
    'COLOR EDITOR INIT_CWD npm_command npm_config_cache npm_config_globalconfig npm_config_init_module npm_config_loglevel ' +
    'npm_config_local_prefix npm_config_node_gyp npm_config_noproxy npm_config_npm_version npm_config_prefix ' +
    'npm_config_user_agent npm_config_userconfig npm_execpath npm_lifecycle_event npm_lifecycle_script npm_node_execpath ' +
    'npm_package_json npm_package_name npm_package_version npm_package_engines_node',
  cron: 'CRON_TZ MAILFROM MAILTO RANDOM_DELAY START_HOURS_RANGE',
  systemd:
    'CACHE_DIRECTORY CONFIGURATION_DIRECTORY CREDENTIALS_DIRECTORY INVOCATION_ID JOURNAL_STREAM LISTEN_FDNAMES LISTEN_FDS ' +
    'LISTEN_PID LOGS_DIRECTORY MAINPID MEMORY_PRESSURE_WATCH MEMORY_PRESSURE_WRITE NOTIFY_SOCKET RUNTIME_DIRECTORY ' +
    'STATE_DIRECTORY SYSTEMD_EXEC_PID WATCHDOG_PID WATCHDOG_USEC',
  Kubernetes:
    'KUBERNETES_PORT KUBERNETES_PORT_443_TCP KUBERNETES_PORT_443_TCP_ADDR KUBERNETES_PORT_443_TCP_PORT ' +
    'KUBERNETES_PORT_443_TCP_PROTO KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT KUBERNETES_SERVICE_PORT_HTTPS ' +
    'NODE_NAME POD_IP POD_NAME POD_NAMESPACE POD_UID WAITLIST_PORT WAITLIST_PORT_80_TCP WAITLIST_PORT_80_TCP_ADDR ' +
    'WAITLIST_SERVICE_HOST WAITLIST_SERVICE_PORT',
  'links of Docker':
    'DB_ENV_POSTGRES_PASSWORD DB_NAME DB_PORT DB_PORT_5432_TCP DB_PORT_5432_TCP_ADDR DB_PORT_5432_TCP_PORT REDIS_NAME ' +
    'REDIS_PORT REDIS_PORT_6379_TCP REDIS_PORT_6379_TCP_ADDR REDIS_HOST SMTP_PORT SMTP_HOST',
  Heroku:
    'DYNO GUNICORN_CMD_ARGS HEROKU_APP_DEFAULT_DOMAIN_NAME HEROKU_APP_ID HEROKU_APP_NAME HEROKU_DYNO_ID ' +
    'HEROKU_POSTGRESQL_COPPER_URL HEROKU_RELEASE_VERSION HEROKU_SLUG_COMMIT MEMORY_AVAILABLE REDISCLOUD_URL REDISTOGO_URL ' +
    'REDIS_TLS_URL SOURCE_VERSION STACK WEB_CONCURRENCY WEB_MEMORY',
  Fly:
    'FLY_ALLOC_ID FLY_APP_NAME FLY_IMAGE_REF FLY_MACHINE_ID FLY_MACHINE_VERSION FLY_PRIVATE_IP FLY_PROCESS_GROUP ' +
    'FLY_PUBLIC_IP FLY_REGION FLY_VM_MEMORY_MB PRIMARY_REGION',
  Render:
    'IS_PULL_REQUEST RENDER RENDER_CPU_COUNT RENDER_DISCOVERY_SERVICE RENDER_EXTERNAL_HOSTNAME RENDER_EXTERNAL_URL ' +
    'RENDER_GIT_BRANCH RENDER_GIT_COMMIT RENDER_GIT_REPO_SLUG RENDER_INSTANCE_ID RENDER_SERVICE_ID RENDER_SERVICE_NAME ' +
    'RENDER_SERVICE_TYPE RENDER_WEB_CONCURRENCY',
  Railway:
    'DATABASE_PRIVATE_URL DATABASE_PUBLIC_URL RAILWAY_DEPLOYMENT_ID RAILWAY_ENVIRONMENT RAILWAY_ENVIRONMENT_NAME ' +
    'RAILWAY_GIT_BRANCH RAILWAY_PRIVATE_DOMAIN RAILWAY_PROJECT_NAME RAILWAY_PUBLIC_DOMAIN RAILWAY_SERVICE_ID ' +
    'RAILWAY_SERVICE_NAME RAILWAY_STATIC_URL RAILWAY_VOLUME_MOUNT_PATH REDISHOST REDISPASSWORD REDISPORT REDISUSER ' +
    'REDIS_PUBLIC_URL',
  'large clouds':
    'AWS_ACCESS_KEY_ID AWS_DEFAULT_REGION AWS_EXECUTION_ENV AWS_REGION AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN ' +
    'CLOUD_RUN_JOB ECS_CONTAINER_METADATA_URI ECS_CONTAINER_METADATA_URI_V4 GAE_ENV GAE_SERVICE GAE_VERSION ' +
    'GOOGLE_CLOUD_PROJECT K_CONFIGURATION K_REVISION K_SERVICE APPSETTING_WEBSITE_SITE_NAME CONTAINER_APP_HOSTNAME ' +
    'CONTAINER_APP_NAME CONTAINER_APP_PORT WEBSITE_HOSTNAME WEBSITE_INSTANCE_ID WEBSITE_SITE_NAME',
  'small clouds':
    'APP_HOME CC_APP_ID CC_DEPLOYMENT_ID CONTAINER CONTAINER_VERSION COOLIFY_BRANCH COOLIFY_FQDN COOLIFY_URL DOKKU_APP_NAME ' +
    'DOKKU_ROOT INSTANCE_ID INSTANCE_NUMBER KOYEB_APP_NAME KOYEB_PUBLIC_DOMAIN KOYEB_SERVICE_NAME NF_HOSTS ' +
    'NORTHFLANK_SERVICE_NAME PLATFORM_RELATIONSHIPS PLATFORM_ROUTES POSTGRESQL_ADDON_URI PROJECT_DOMAIN REDIS_DIRECT_URI ' +
    'SCALINGO_POSTGRESQL_URL SCALINGO_REDIS_URL SERVICE_FQDN_APP SERVICE_URL_APP UPSTASH_REDIS_REST_URL VCAP_APPLICATION ' +
    'VCAP_SERVICES VERCEL_URL',
  'continuous integration':
    'BUILD_ID BUILD_URL CI CI_COMMIT_SHA CI_JOB_NAME CI_SERVER_HOST CI_SERVER_PORT CI_SERVER_URL GITHUB_ACTIONS ' +
    'GITHUB_API_URL GITHUB_BASE_REF GITHUB_EVENT_NAME GITHUB_EVENT_PATH GITHUB_SERVER_URL JENKINS_URL JOB_NAME RUNNER_NAME ' +
    'RUNNER_OS RUNNER_TEMP',
  Windows:
    'ALLUSERSPROFILE APPDATA COMPUTERNAME ComSpec CommonProgramFiles HOMEDRIVE HOMEPATH LOCALAPPDATA LOGONSERVER ' +
    'NUMBER_OF_PROCESSORS OS PATHEXT PROCESSOR_ARCHITECTURE PSModulePath Path ProgramData ProgramFiles SystemDrive ' +
    'SystemRoot USERDOMAIN USERPROFILE windir',
  macOS:
    'Apple_PubSub_Socket_Render COMMAND_MODE HOMEBREW_CELLAR HOMEBREW_PREFIX LaunchInstanceID SECURITYSESSIONID ' +
    'TERM_SESSION_ID XPC_FLAGS XPC_SERVICE_NAME __CFBundleIdentifier __CF_USER_TEXT_ENCODING',
  'web projects':
    'ADMIN_EMAIL ADMIN_PASSWORD ALLOWED_HOSTS API_BASE_URL API_KEY API_URL APP_NAME APP_URL AUTH_SECRET COOKIE_SECRET ' +
    'DATABASE_HOST DATABASE_NAME DATABASE_USER DB_URL DIRECT_URL FRONTEND_URL JWT_SECRET MAIL_DRIVER MAIL_HOST MAIL_MAILER ' +
    'MAIL_PASSWORD MAIL_PORT MAIL_USERNAME NEXTAUTH_URL NEXT_PUBLIC_BASE_URL POSTGRES_URL PUBLIC_URL SENTRY_DSN SERVER_NAME ' +
    'SESSION_SECRET SMTP_FROM SMTP_PASS SMTP_PASSWORD SMTP_USER STRIPE_WEBHOOK_SECRET VITE_BASE_URL WEBHOOK_ID',
}

describe('names that are nearly those of settings', () => {
  for (const [platform, names] of Object.entries(usual)) {
    test(`nothing is said of the environment of ${platform}, whatever the provider`, () => {
      const variables = Object.fromEntries(names.split(' ').map(name => [name, 'x']))
      for (const name of Object.keys(variables)) assert.ok(!known.includes(name), `${name} is a setting`)
      assert.deepEqual(inEnvironment(variables, known), [])
    })
  }

  const slips: readonly (readonly [name: string, meant: string])[] = [
    ['CORS_ORIGIN', 'CORS_ORIGINS'],
    ['RATE_LIMT', 'RATE_LIMIT'],
    ['RATE_LIMIT_WINDWO', 'RATE_LIMIT_WINDOW'],
    ['TRUST_PORXY', 'TRUST_PROXY'],
    ['BASEURL', 'BASE_URL'],
    ['base_url', 'BASE_URL'],
    ['DATABASE_URI', 'DATABASE_URL'],
    ['WEBHOOK_SECRETS', 'WEBHOOK_SECRET'],
    ['SLACK_WEBHOOK_URI', 'SLACK_WEBHOOK_URL'],
    ['SMTPURL', 'SMTP_URL'],
    ['MAIL_FORM', 'MAIL_FROM'],
    ['LOGLEVEL', 'LOG_LEVEL'],
  ]
  for (const [name, meant] of slips) {
    test(`${name} is told, with ${meant}, in the environment as in the file`, () => {
      assert.deepEqual(inEnvironment({ [name]: 'x' }), [`${name} is not a setting of Waitlist; did you mean ${meant}?`])
      assert.deepEqual(inFile(name), [`.env has ${name}, which is not a setting of Waitlist; did you mean ${meant}?`])
    })
  }

  test("a provider's setting is told where the provider is chosen", () => {
    const ofLoops = Object.keys(vendors.loops.settings)
    const told = ['LOOP_API_KEY is not a setting of Waitlist; did you mean LOOPS_API_KEY?']
    assert.deepEqual(inEnvironment({ LOOP_API_KEY: 'x' }, [...own, ...ofLoops]), told)
    assert.deepEqual(inEnvironment({ LOOP_API_KEY: 'x' }), [])
  })

  test('what begins like the settings of the chosen provider is left to the sentence of that provider', () => {
    const names = { inFile: ['LOOPS_API_KYE'], inEnvironment: { LOOPS_API_KY: 'x' }, known, useful: known }
    assert.equal(misnamed(names).length, 2)
    assert.deepEqual(misnamed({ ...names, prefix: 'LOOPS_' }), [])
  })

  test('nothing is said where the right one is set too, of an empty one, and of what a neighbour sets', () => {
    assert.deepEqual(inEnvironment({ DATABASE_URI: 'x', DATABASE_URL: 'y' }), [])
    const both = { inFile: ['DATABASE_URL'], inEnvironment: { DATABASE_URI: 'x' }, known, useful: own }
    assert.deepEqual(misnamed(both), [])
    assert.deepEqual(inEnvironment({ CORS_ORIGIN: '' }), [])
    assert.deepEqual(inEnvironment({ ADMINPORT: 'tcp://10.0.0.7:80' }), [])
  })

  test('of a name in the file that is near none only that it is none', () => {
    assert.deepEqual(inFile('SMTP_PASSWORD', 'HOSTS', 'SSL_CERT_FILE'), [
      '.env has SMTP_PASSWORD, which is not a setting of Waitlist',
      '.env has HOSTS, which is not a setting of Waitlist; did you mean HOST?',
      '.env has SSL_CERT_FILE, which is not a setting of Waitlist; did you mean TLS_CERT_FILE?',
    ])
  })
})
