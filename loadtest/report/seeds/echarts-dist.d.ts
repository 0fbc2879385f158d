declare module 'echarts/dist/echarts.esm.min.mjs' {
  export * from 'echarts'
}
