pub struct Metrics;
impl Metrics { pub fn new()->Self{Self} pub fn reply(&self,_:&leasehold_cell::Reply){} pub(crate) fn render(&self,_:&crate::app::App)->String{String::new()} pub fn served(&self,_:usize,_:u16,_:std::time::Duration){} }
