// Two projects: unit tests lie beside the file they test; the end-to-end suite in test/ starts real processes.
const shared = { transform: {}, testEnvironment: 'node' }

export default {
  projects: [
    { ...shared, displayName: 'unit', testMatch: ['<rootDir>/{packages,services,scripts,loadtest}/**/*.test.js'] },
    {
      ...shared,
      displayName: 'e2e',
      testMatch: ['<rootDir>/test/**/*.test.js'],
      testEnvironment: '<rootDir>/test/support/environment.js',
      setupFilesAfterEnv: ['<rootDir>/test/support/setup.js'],
    },
  ],
}
